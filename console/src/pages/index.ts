// All pages and all tabs of a sandbox: one line each, loaded when first shown.
import type { Sandbox } from "@gen/sandbox_pb";
import type { IconName } from "../ui/icons";
import type { Loader } from "../ui/lazy";

export interface PageProps {
  params: Record<string, string>;
}

export interface Page {
  // As in router.ts: "/sandboxes/:id/*".
  path: string;
  title: string;
  // Absent: not in the navigation.
  icon?: IconName;
  // Only shown to callers with this role.
  needs?: "admin" | "write";
  load: Loader<PageProps>;
}

export interface TabProps {
  // The latest known state; a new object after each change.
  sandbox: Sandbox;
}

export interface Tab {
  // The last part of the address: #/sandboxes/ID/files.
  id: string;
  label: string;
  // Absent: for every sandbox.
  isFor?: (sandbox: Sandbox) => boolean;
  load: Loader<TabProps>;
}

export const pages: Page[] = [
  { path: "/", title: "Overview", icon: "overview", load: () => import("./overview/overview") },
  { path: "/sandboxes/:id/*", title: "Sandbox", load: () => import("./sandbox/sandbox") },
  { path: "/events", title: "Events", icon: "event", load: () => import("./events/events") },
  { path: "/templates", title: "Templates", icon: "template", load: () => import("./templates/templates") },
  { path: "/volumes", title: "Volumes", icon: "volume", load: () => import("./volumes/volumes") },
  { path: "/models", title: "Models", icon: "model", load: () => import("./models/models") },
  { path: "/access/*", title: "Access", icon: "token", needs: "write", load: () => import("./access/access") },
  { path: "/owners", title: "Owners", icon: "people", needs: "admin", load: () => import("./owners/owners") },
  { path: "/audit", title: "Audit", icon: "audit", load: () => import("./audit/audit") },
  { path: "/doctor", title: "Doctor", icon: "doctor", needs: "admin", load: () => import("./doctor/doctor") },
];

export const tabs: Tab[] = [
  { id: "summary", label: "Summary", load: () => import("./sandbox/summary") },
  { id: "terminals", label: "Terminals", load: () => import("./sandbox/terminals/terminals") },
  { id: "processes", label: "Processes", load: () => import("./sandbox/processes/processes") },
  { id: "files", label: "Files", load: () => import("./files/files") },
  { id: "turns", label: "Turns", load: () => import("./turns/turns") },
  { id: "services", label: "Services", load: () => import("./services/services") },
  { id: "network", label: "Network", load: () => import("./network/network") },
  { id: "permissions", label: "Permissions", isFor: (sandbox) => sandbox.codebase !== undefined, load: () => import("./permissions/permissions") },
  { id: "usage", label: "Usage", load: () => import("./usage/usage") },
  { id: "events", label: "Events", load: () => import("./events/tab") },
  { id: "settings", label: "Settings", load: () => import("./settings/settings") },
];

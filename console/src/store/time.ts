// The current time, for ages: moves every five seconds while the tab is visible.
import { signal } from "@preact/signals";
import { visible } from "../api/connection";

export const now = signal(Date.now());

setInterval(() => {
  if (visible.peek()) now.value = Date.now();
}, 5000);
visible.subscribe((isVisible) => {
  if (isVisible) now.value = Date.now();
});

// The output of one process: follow, search, download.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { count } from "../../../lib/text";
import { Button } from "../../../ui/button";
import { Problem } from "../../../ui/parts";
import { downloadOutput } from "./download";
import { Feed } from "./feed";
import { Search } from "./search";
import { View } from "./view";

const SCAN_LINES = 50_000;

interface SearchState {
  search: Search | null;
  // The index of the current match; -1: none.
  at: number;
}

// Scans as many lines as are there, in parts, so that typing stays fluid.
function useSearch(feed: Feed, query: string, version: number) {
  const [state, setState] = useState<SearchState>({ search: null, at: -1 });
  useEffect(() => {
    setState({ search: query === "" ? null : new Search(query, feed.lines), at: -1 });
  }, [feed, query]);
  useEffect(() => {
    const { search } = state;
    if (!search) return;
    let timer = 0;
    const step = () => {
      const isDone = search.scan(SCAN_LINES);
      if (search.matches.length > 0 && state.at < 0) setState({ search, at: 0 });
      else if (!isDone) timer = window.setTimeout(step, 0);
    };
    step();
    return () => clearTimeout(timer);
  }, [state.search, state.at, version]);
  const move = (step: number) => setState(({ search, at }) => {
    const total = search?.matches.length ?? 0;
    return { search, at: total === 0 ? -1 : (at + step + total) % total };
  });
  return { ...state, move };
}

function matchText({ search, at }: SearchState): string {
  if (!search) return "";
  return search.matches.length === 0 ? "no match" : `${at + 1} of ${search.matches.length.toLocaleString("en")}`;
}

export function Output({ sandboxId, processId }: { sandboxId: string; processId: string }) {
  const [isWhole, setWhole] = useState(false);
  const feed = useMemo(() => new Feed({ sandboxId, processId }, isWhole), [sandboxId, processId, isWhole]);
  const [isFollowing, setFollowing] = useState(true);
  const [query, setQuery] = useState("");
  const download = useRef<AbortController | null>(null);
  const version = feed.shown.value;
  const search = useSearch(feed, query, version);
  const current = search.search?.matches[search.at] ?? -1;

  useEffect(() => {
    void feed.open();
    return () => feed.close();
  }, [feed]);
  useEffect(() => () => download.current?.abort(), []);
  useEffect(() => {
    if (current >= 0) setFollowing(false);
  }, [current]);

  const save = () => {
    download.current = new AbortController();
    return downloadOutput({ sandboxId, processId }, download.current.signal);
  };
  const searched = (event: KeyboardEvent) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    search.move(event.shiftKey ? -1 : 1);
  };
  return (
    <div class="output">
      <div class="output-bar">
        <input type="search" class="output-search" placeholder="Search" aria-label="Search in the output" value={query}
          onInput={(event) => setQuery(event.currentTarget.value)} onKeyDown={searched} />
        <span class="muted output-found" role="status">{matchText(search)}</span>
        <Button kind="quiet" size="small" icon="up" label="Previous match" disabled={current < 0} onClick={() => search.move(-1)} />
        <Button kind="quiet" size="small" icon="down" label="Next match" disabled={current < 0} onClick={() => search.move(1)} />
        <span class="grow" />
        <span class="muted output-count">{count(feed.lines.end - feed.lines.first, "line")}</span>
        {feed.isPartial.value && <Button size="small" onClick={() => setWhole(true)}>Load all</Button>}
        <Button size="small" icon="down" pressed={isFollowing} onClick={() => setFollowing(!isFollowing)}>Follow</Button>
        <Button size="small" icon="download" onClick={save}>Download</Button>
      </div>
      {feed.problem.value && <Problem error={new Error(feed.problem.value)} />}
      <View lines={feed.lines} version={version} label={`Output of ${processId}`} query={query} current={current}
        isFollowing={isFollowing} onFollow={setFollowing} />
    </div>
  );
}

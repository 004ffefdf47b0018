// Runs an action soon, and at most four times a second however often it is asked for.
const intervalMs = 250;

export function merged(action: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let last = 0;
  return () => {
    if (timer !== undefined) return;
    const wait = Math.max(0, last + intervalMs - performance.now());
    timer = setTimeout(() => {
      timer = undefined;
      last = performance.now();
      action();
    }, wait);
  };
}

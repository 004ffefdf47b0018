// Gives an element the rest of the window's height, at least `least` pixels. What is above it may change its height.
import type { RefObject } from "preact";
import { useLayoutEffect } from "preact/hooks";

const MARGIN = 12;

export function useFill(ref: RefObject<HTMLElement>, least: number): void {
  useLayoutEffect(() => {
    const element = ref.current;
    if (!element) return;
    const fill = () => {
      const top = element.getBoundingClientRect().top + scrollY;
      const height = `${Math.max(least, Math.floor(innerHeight - top - MARGIN))}px`;
      if (element.style.height !== height) element.style.height = height;
    };
    fill();
    const observer = new ResizeObserver(fill);
    for (let each = element.parentElement; each && each !== document.body; each = each.parentElement) observer.observe(each);
    addEventListener("resize", fill);
    return () => {
      observer.disconnect();
      removeEventListener("resize", fill);
    };
  });
}

// A component that is loaded when it is first shown.
import type { ComponentChildren, ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Loading, Problem } from "./parts";

export type Loader<P> = () => Promise<{ default: ComponentType<P> }>;

const loaded = new Map<Loader<never>, ComponentType<never>>();

export function Lazy<P extends object>({ load, props, waiting = <Loading /> }: {
  load: Loader<P>; props: P; waiting?: ComponentChildren;
}) {
  const [error, setError] = useState<unknown>(null);
  const [, setLoaded] = useState<unknown>(null);
  const Found = loaded.get(load as Loader<never>) as ComponentType<P> | undefined;
  useEffect(() => {
    if (Found) return;
    let isWanted = true;
    setError(null);
    load().then((module) => {
      loaded.set(load as Loader<never>, module.default as ComponentType<never>);
      if (isWanted) setLoaded(module);
    }, (thrown: unknown) => {
      if (isWanted) setError(thrown);
    });
    return () => {
      isWanted = false;
    };
  }, [load]);
  if (Found) return <Found {...props} />;
  if (error) return <Problem error={error} />;
  return <>{waiting}</>;
}

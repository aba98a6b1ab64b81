interface Shared {
  listeners: Set<() => void>;
  /** The one listener that the signal itself calls. */
  raise: () => void;
}

const sharedBySignal = new WeakMap<AbortSignal, Shared>();

/**
 * Calls the listener once when the signal is aborted, until the returned function is called. A program may give one
 * signal to any number of requests: all share one listener of the signal, since Node.js warns of a leak beyond ten.
 */
export function onAbort(signal: AbortSignal, listener: () => void): () => void {
  const shared = sharedBySignal.get(signal) ?? share(signal);
  // Two requests may pass the same function.
  const own = () => listener();
  shared.listeners.add(own);
  return () => {
    if (!shared.listeners.delete(own) || shared.listeners.size > 0) return;
    signal.removeEventListener('abort', shared.raise);
    sharedBySignal.delete(signal);
  };
}

function share(signal: AbortSignal): Shared {
  const listeners = new Set<() => void>();
  const raise = () => {
    for (const listener of listeners) listener();
  };
  const shared = { listeners, raise };
  sharedBySignal.set(signal, shared);
  signal.addEventListener('abort', raise, { once: true });
  return shared;
}

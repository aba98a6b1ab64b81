/** Requests that may wait in the engine for their first step: with more, others have room sooner. */
export const MAX_WAITING = 8;

/** Number of requests that a worker has room for, of which it may have asked for some already. @param waiting see WorkEngine */
export function roomFor({ places, held, waiting }: Record<'places' | 'held' | 'waiting', number>): number {
  return Math.min(places - held, MAX_WAITING - waiting);
}

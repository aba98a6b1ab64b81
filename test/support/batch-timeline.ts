import { type BatcherConfig, DynamicBatcher } from '../../scheduler/tensors/dynamic-batcher.js';
import { type NamedRequest, namesOf, queued } from './queued-requests.js';

/** Milliseconds, name, rows, and whatever else matters of the request. */
export type Arrival = [atMs: number, name: string, rows?: number, more?: Partial<NamedRequest>];

/** Instances that run the batches; as many as there are batches, at once, where nothing else is said. */
export interface Instances {
  count?: number;
  computeMs?: number;
  /** No instance is free before. */
  fromMs?: number;
}

/**
 * What becomes of requests, with every call at the very moment for which the batcher asks: "1000 A B" where a
 * batch goes, "300 -C" where a request is rejected, "0 !D" where it is refused. Where `leaves` names a
 * request, the client that sent it leaves at that time.
 */
export function timeline(
  config: BatcherConfig,
  arrivals: readonly Arrival[],
  { count = Infinity, computeMs = 0, fromMs = 0 }: Instances = {},
  leaves: Readonly<Record<string, number>> = {},
): string[] {
  const batcher = new DynamicBatcher<NamedRequest>(config);
  const lines: string[] = [];
  let busyUntil: number[] = [];
  let wakeMs: number | null = null;
  const requests = new Map(arrivals.map(([, name, rows, more]) => [name, queued(name, rows, more)] as const));
  for (let nowMs = 0, index = 0; ; ) {
    busyUntil = busyUntil.filter((until) => until > nowMs);
    for (const [name, atMs] of Object.entries(leaves)) {
      if (atMs === nowMs && batcher.remove(requests.get(name)!)) lines.push(`${nowMs} (${name})`);
    }
    for (; index < arrivals.length && arrivals[index]![0] === nowMs; index++) {
      const name = arrivals[index]![1];
      if (batcher.add(requests.get(name)!, nowMs * 1000) !== null) lines.push(`${nowMs} !${name}`);
    }
    for (;;) {
      const hasRoom = nowMs >= fromMs && busyUntil.length < count;
      const step = batcher.next(nowMs * 1000, { hasRoom });
      for (const { name } of step.rejected) lines.push(`${nowMs} -${name}`);
      wakeMs = step.wakeAtUs === null ? null : step.wakeAtUs / 1000;
      if (step.batch === null) break;
      lines.push(`${nowMs} ${namesOf(step.batch)}`);
      if (computeMs > 0) busyUntil.push(nowMs + computeMs);
    }
    const times = [arrivals[index]?.[0], wakeMs, fromMs, ...busyUntil, ...Object.values(leaves)];
    const later = times.filter((time): time is number => typeof time === 'number' && time > nowMs);
    if (later.length === 0) return lines;
    nowMs = Math.min(...later);
  }
}

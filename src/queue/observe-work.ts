import type { ObserveWork, WorkObserver } from '../../cluster/nats/work-observer.js';
import type { Log } from '../server/logs/log.js';
import type { Tracing } from '../server/tracing/tracing.js';
import { WorkLine } from './work-lines.js';
import { type TracedWorker, WorkTrace } from './work-trace.js';

/** Follows a worker's requests for its log, and those that are traced for their traces. @param tracing null: nothing is traced */
export function observeWork(of: TracedWorker, log: Log, tracing: Tracing | null): ObserveWork {
  return (item, request) => {
    const observers: WorkObserver[] = [];
    if (log.levels.log_info) observers.push(new WorkLine(log, of.worker, item, request));
    const trace = tracing === null ? null : WorkTrace.begin(tracing, of, item, request);
    if (trace !== null) observers.push(trace);
    return observers.length < 2 ? (observers[0] ?? null) : all(observers);
  };
}

function all(observers: readonly WorkObserver[]): WorkObserver {
  return {
    onBlocks: () => {
      for (const one of observers) one.onBlocks();
    },
    onSubmit: () => {
      for (const one of observers) one.onSubmit();
    },
    onPiece: (piece) => {
      for (const one of observers) one.onPiece(piece);
    },
    onEnd: (end, reason) => {
      for (const one of observers) one.onEnd(end, reason);
    },
  };
}

import type { LoadingNotice, LoadingPhase } from '../../cluster/nats/loading-notice.js';
import type { BuildProgress } from '../../engine/building/builder.js';
import type { PullProgress } from '../hub/pull.js';

/** How far a load is. */
export type LoadState = Pick<LoadingNotice, 'phase' | 'fraction'>;

/** Milliseconds between two notices. */
const TELL_MS = 1_000;

/** Reports to gateways, from the start of a worker on, that it loads its model, and its progress. */
export class LoadingTeller {
  readonly #names: Pick<LoadingNotice, 'worker' | 'model'>;
  readonly #tell: (notice: LoadingNotice) => void;
  readonly #begunMs = performance.now();
  readonly #timer: NodeJS.Timeout;
  #state: LoadState = { phase: 'loading', fraction: null };

  constructor(names: Pick<LoadingNotice, 'worker' | 'model'>, tell: (notice: LoadingNotice) => void) {
    this.#names = names;
    this.#tell = tell;
    this.#timer = setInterval(() => this.#say(), TELL_MS).unref();
    this.#say();
  }

  get state(): LoadState {
    return this.#state;
  }

  /** Notes the progress of a download. */
  readonly onDownload = ({ done, total }: Pick<PullProgress, 'done' | 'total'>): void =>
    this.#enter(done < total ? 'downloading' : 'loading', total === 0 ? null : done / total);

  /** Notes the progress of the build of an engine. */
  readonly onProgress = ({ phase, done, total }: BuildProgress): void => {
    const hasShare = (phase === 'converting' || phase === 'summing') && total > 0;
    this.#enter(phase === 'finishing' ? 'loading' : 'building', hasShare ? done / total : null);
  };

  #enter(phase: LoadingPhase, fraction: number | null): void {
    const isKnown = phase !== 'loading' && fraction !== null;
    this.#state = { phase, fraction: isKnown ? Math.min(1, fraction) : null };
  }

  #say(): void {
    const elapsedMs = Math.round(performance.now() - this.#begunMs);
    this.#tell({ ...this.#names, ...this.#state, elapsedMs });
  }

  /** The worker takes requests. */
  ready(): void {
    this.stop();
    this.#state = { phase: 'ready', fraction: null };
    this.#say();
  }

  /** Says no more. */
  stop(): void {
    clearInterval(this.#timer);
  }
}

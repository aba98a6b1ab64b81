import { startWorker } from '../../workers.js';
import type { CodeAnswer, CodeQuestion, Run } from './code-runs.js';

/** Characters of the longest code that is coloured. */
export const MAX_COLOURED = 100_000;
/** Milliseconds that a block of code may take; the worker is ended then, and the block stays as it is. */
const TIME_LIMIT_MS = 3000;

interface Job extends CodeQuestion {
  done: (runs: Run[] | null) => void;
}

/** Asks a worker for the colours of code, block after block. The worker starts with the first. */
class Highlighter {
  readonly #jobs: Job[] = [];
  #worker: Worker | null = null;
  #isBusy = false;

  /** Pieces of the code with their classes; null where it has no colours. */
  runs(code: string, language: string): Promise<Run[] | null> {
    if (language === '' || code.length > MAX_COLOURED) return Promise.resolve(null);
    return new Promise((done) => {
      this.#jobs.push({ code, language: language.toLowerCase(), done });
      this.#next();
    });
  }

  #next(): void {
    const job = this.#isBusy ? undefined : this.#jobs.shift();
    if (job === undefined) return;
    this.#isBusy = true;
    const worker = this.#worker ?? startWorker('code');
    this.#worker = worker;
    const end = (runs: Run[] | null, isBroken: boolean) => {
      clearTimeout(timer);
      worker.onmessage = null;
      worker.onerror = null;
      if (isBroken) {
        worker.terminate();
        this.#worker = null;
      }
      this.#isBusy = false;
      job.done(runs);
      this.#next();
    };
    const timer = setTimeout(() => end(null, true), TIME_LIMIT_MS);
    worker.onmessage = ({ data }: MessageEvent<CodeAnswer>) => end(data.runs, false);
    worker.onerror = (event) => {
      event.preventDefault();
      end(null, true);
    };
    const { code, language } = job;
    worker.postMessage({ code, language } satisfies CodeQuestion);
  }
}

export const highlighter = new Highlighter();

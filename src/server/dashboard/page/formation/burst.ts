import { createParser } from 'eventsource-parser';
import { messageOf } from '../../../../../base/error-text.js';
import { problemOf } from '../problem.js';
import type { Session } from '../session.js';
import type { BurstGroup } from './burst-prompts.js';

export interface BurstProgress {
  sent: number;
  ended: number;
  /** First problem of the burst; '' where there was none. */
  problem: string;
}

/** Sends prompts at once and discards their answers, until all have ended or `stop`. */
export class Burst {
  readonly progress: BurstProgress = { sent: 0, ended: 0, problem: '' };
  /** Resolves when the burst is over. */
  readonly done: Promise<void>;
  readonly #session: Session;
  readonly #aborted = new AbortController();
  readonly #onProgress: () => void;

  constructor(session: Session, model: string, groups: readonly BurstGroup[], onProgress: () => void) {
    this.#session = session;
    this.#onProgress = onProgress;
    this.progress.sent = groups.reduce((sum, { prompts }) => sum + prompts.length, 0);
    this.done = Promise.all(groups.map((group) => this.#send(model, group))).then(() => {});
  }

  stop(): void {
    this.#aborted.abort();
  }

  async #send(model: string, { prompts, maxTokens, stop }: BurstGroup): Promise<void> {
    const ends = { max_tokens: maxTokens, ignore_eos: true, ...(stop.length > 0 ? { stop } : {}) };
    const body = { model, prompt: prompts, ...ends, temperature: 0.8, stream: true };
    try {
      const { signal } = this.#aborted;
      const response = await this.#session.post('v1/completions', body, { signal });
      if (!response.ok) throw new Error(await problemOf(response));
      await this.#read(response);
    } catch (error) {
      if (!this.#aborted.signal.aborted) this.progress.problem ||= messageOf(error);
    }
    this.#onProgress();
  }

  /** Reads an answer without parsing it: it is not shown, and parsing would cost frames. */
  async #read(response: Response): Promise<void> {
    const parser = createParser({
      onEvent: ({ data }) => {
        if (!data.includes('"finish_reason":"')) return;
        this.progress.ended++;
        this.#onProgress();
      },
    });
    const decoder = new TextDecoder();
    for (const reader = response.body!.getReader(); ; ) {
      const { done, value } = await reader.read();
      if (done) return;
      parser.feed(decoder.decode(value, { stream: true }));
    }
  }
}

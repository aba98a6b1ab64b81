import { createParser } from 'eventsource-parser';
import { messageOf } from '../../../../../base/error-text.js';
import { el, say } from '../dom.js';
import type { Feed } from '../feed.js';
import { loadModels } from '../models.js';
import { problemOf } from '../problem.js';
import type { Session } from '../session.js';
import { type BurstGroup, type BurstLength, burstOf } from './burst-prompts.js';
import { plural } from './words.js';

const COUNTS = [4, 8, 16, 32, 64];
const LENGTHS: readonly [BurstLength, string][] = [
  ['short', 'short'],
  ['mixed', 'mixed lengths'],
  ['long', 'long'],
];
const USUAL_CONTEXT = 512;
/**
 * Most bursts at once. Two show newcomers joining; more would take all connections that a browser opens to a server.
 */
const MAX_BURSTS = 2;

/** Controls for bursts: "Send 16 prompts", their number and length, and stop. */
export class BurstControls {
  readonly element: HTMLElement;
  readonly #session: Session;
  readonly #feed: Feed;
  readonly #count = select(
    'Prompts',
    COUNTS.map((count) => [String(count), `${count} prompts`] as const),
    '16',
  );
  readonly #length = select('Lengths', LENGTHS, 'mixed');
  readonly #senders: HTMLButtonElement[] = [];
  readonly #stop = el('button', { class: 'button', type: 'button', disabled: true }, ['Cancel'], {
    click: () => {
      for (const burst of this.#bursts) burst.stop();
    },
  });
  readonly #status = el('p', { class: 'burst-status', role: 'status' });
  readonly #bursts = new Set<Burst>();
  /** Bursts that the line below reports. */
  #told: Burst[] = [];
  #turn = 0;

  constructor(session: Session, feed: Feed) {
    this.#session = session;
    this.#feed = feed;
    this.#count.addEventListener('change', () => this.#name());
    this.element = el('div', { class: 'burst' }, [
      el('div', { class: 'burst-row' }, [
        this.#count,
        this.#length,
        this.sendButton('button primary'),
        this.#stop,
      ]),
      this.#status,
    ]);
  }

  /** Makes a further button that sends. */
  sendButton(style: string): HTMLButtonElement {
    const button = el('button', { class: style, type: 'button' }, [], { click: () => void this.#send() });
    this.#senders.push(button);
    this.#name();
    return button;
  }

  #name(): void {
    for (const button of this.#senders) button.textContent = `Send ${this.#count.value} prompts`;
  }

  async #send(): Promise<void> {
    const { model } = this.#feed;
    if (model === null || this.#bursts.size === MAX_BURSTS) return;
    const context = await contextOf(this.#session, model);
    const length = this.#length.value as BurstLength;
    const groups = burstOf(Number(this.#count.value), length, context, this.#turn++);
    // Earlier bursts are over, so their report ends.
    if (this.#bursts.size === 0) this.#told = [];
    const burst = new Burst(this.#session, model, groups, () => this.#tell());
    this.#bursts.add(burst);
    this.#told.push(burst);
    this.#tell();
    await burst.done;
    this.#bursts.delete(burst);
    this.#tell();
  }

  #tell(): void {
    const sum = (name: 'sent' | 'ended') => this.#told.reduce((all, { progress }) => all + progress[name], 0);
    const problem = this.#told.find(({ progress }) => progress.problem !== '')?.progress.problem ?? '';
    for (const button of this.#senders) button.disabled = this.#bursts.size === MAX_BURSTS;
    this.#stop.disabled = this.#bursts.size === 0;
    const text = problem !== '' ? problem : `${sum('ended')} of ${plural(sum('sent'), 'prompt')} answered`;
    say(this.#status, text);
    this.#status.classList.toggle('problem', problem !== '');
  }
}

async function contextOf(session: Session, model: string): Promise<number> {
  const models = await loadModels(session).catch(() => []);
  return models.find(({ id }) => id === model)?.max_model_len ?? USUAL_CONTEXT;
}

function select(
  label: string,
  options: readonly (readonly [value: string, text: string])[],
  chosen: string,
): HTMLSelectElement {
  return el(
    'select',
    { class: 'field', 'aria-label': label },
    options.map(([value, text]) => el('option', { value, selected: value === chosen }, [text])),
  );
}

interface BurstProgress {
  sent: number;
  ended: number;
  /** First problem of the burst; '' where there was none. */
  problem: string;
}

/** Sends prompts at once and discards their answers, until all have ended or `stop`. */
class Burst {
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

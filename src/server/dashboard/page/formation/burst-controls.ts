import { el } from '../dom.js';
import type { Feed } from '../feed.js';
import { loadModels } from '../models.js';
import type { Session } from '../session.js';
import { Burst } from './burst.js';
import { type BurstLength, burstOf } from './burst-prompts.js';
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
    if (this.#status.textContent !== text) this.#status.textContent = text;
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

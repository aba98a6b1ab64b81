import type { ModelRow, ModelWork, SizeCount } from '../../../feeds/models-event.js';
import { el, say } from '../dom.js';
import { count } from '../formation/words.js';
import { BatchRate } from './batch-rate.js';
import {
  adapterWords,
  badgeOf,
  failureWords,
  instanceWords,
  meanRows,
  meanTime,
  reasonOf,
  sequenceWords,
  sizeLabel,
  sizesSentence,
} from './model-words.js';

/** Instances that are drawn; the words next to them count all. */
const MAX_DRAWN = 24;

const STATES = ['busy', 'idle', 'starting', 'dead'] as const;

/** Numbers of a card, with what each says. */
const NUMBERS = {
  Waiting: ({ waiting }) => count(waiting),
  Running: ({ running }) => count(running),
  Answered: ({ answered }) => count(answered),
  Batches: ({ batches }) => count(batches),
  'Batches/s': (_, rate) => (rate === null ? '–' : rate.toFixed(rate < 10 ? 1 : 0).replace(/\.0$/, '')),
  'Mean rows': (work) => meanRows(work),
  Queue: ({ queueMs }) => meanTime(queueMs),
  Compute: ({ computeMs }) => meanTime(computeMs),
} as const satisfies Record<string, (work: ModelWork, rate: number | null) => string>;

const KINDS: Record<ModelWork['kind'], string> = {
  tensors: '',
  generator: 'generates text',
  encoder: 'encodes text',
};

/** One version of a model: its state, and what it does. */
export class ModelCard {
  readonly element: HTMLLIElement;
  readonly #facts = el('span', { class: 'model-facts' });
  readonly #badge = el('span', { class: 'model-badge' });
  readonly #reason = el('p', { class: 'model-reason' });
  readonly #marks = el('span', { class: 'model-marks', 'aria-hidden': 'true' });
  readonly #instances = el('span');
  readonly #adapters = el('p', { class: 'model-adapters' });
  readonly #values = Object.keys(NUMBERS).map(() => el('dd'));
  readonly #sizes = new BatchSizes();
  readonly #sequences = el('p', { class: 'model-sequences' });
  readonly #failures = el('p', { class: 'model-failures' });
  readonly #work: HTMLElement;
  readonly #rate = new BatchRate();

  constructor({ name }: ModelRow) {
    const pairs = Object.keys(NUMBERS).map((label, i) =>
      el('div', {}, [el('dt', {}, [label]), this.#values[i]!]),
    );
    this.#work = el('div', { class: 'model-work' }, [
      el('p', { class: 'model-instances' }, [this.#marks, this.#instances]),
      this.#adapters,
      this.#sequences,
      el('dl', { class: 'model-numbers' }, pairs),
      this.#sizes.element,
      this.#failures,
    ]);
    this.element = el('li', { class: 'model' }, [
      el('div', { class: 'model-head' }, [el('h3', {}, [name]), this.#facts, this.#badge]),
      this.#reason,
      this.#work,
    ]);
  }

  /** @param timeMs the server's time of the row */
  update(row: ModelRow, timeMs: number): void {
    const { version, work } = row;
    const { mark, text } = badgeOf(row);
    this.#badge.dataset.mark = mark;
    say(this.#badge, text);
    const facts = [
      version === null ? '' : `version ${version}`,
      work?.backend ?? '',
      KINDS[work?.kind ?? 'tensors'],
    ];
    say(this.#facts, facts.filter((fact) => fact !== '').join(' · '));
    const reason = reasonOf(row);
    this.#reason.hidden = reason === '';
    say(this.#reason, reason);
    this.#work.hidden = work === null;
    if (work !== null) this.#show(work, this.#rate.take(timeMs, work.batches));
  }

  #show(work: ModelWork, rate: number | null): void {
    say(this.#instances, instanceWords(work));
    this.#draw(work.instances);
    const adapters = adapterWords(work);
    this.#adapters.hidden = adapters === '';
    say(this.#adapters, adapters);
    for (const [i, value] of Object.values(NUMBERS).entries()) say(this.#values[i]!, value(work, rate));
    this.#sizes.update(work.sizes);
    const sequences = sequenceWords(work);
    this.#sequences.hidden = sequences === '';
    say(this.#sequences, sequences);
    const failed = failureWords(work);
    this.#failures.hidden = failed === '';
    say(this.#failures, failed);
  }

  #draw(instances: ModelWork['instances']): void {
    const states = STATES.flatMap((state) =>
      Array<string>(Math.min(instances[state], MAX_DRAWN)).fill(state),
    );
    const drawn = states.slice(0, MAX_DRAWN);
    if (drawn.length !== this.#marks.children.length)
      this.#marks.replaceChildren(...drawn.map(() => el('i')));
    for (const [i, mark] of [...this.#marks.children].entries()) {
      if (mark.className !== drawn[i]) mark.className = drawn[i]!;
    }
  }
}

/** Bars of how many batches had how many rows, with a sentence of the same for screen readers. */
class BatchSizes {
  readonly #bars = el('div', { class: 'sizes-bars', role: 'img' });
  readonly #caption = el('figcaption');
  readonly element = el('figure', { class: 'sizes' }, [this.#caption, this.#bars]);
  /** Sizes as they are drawn. */
  #drawn: readonly SizeCount[] = [];

  update(sizes: readonly SizeCount[]): void {
    this.element.hidden = sizes.length === 0;
    const said = sizesSentence(sizes);
    if (this.#bars.getAttribute('aria-label') === said) return;
    this.#bars.setAttribute('aria-label', said);
    if (!sameSizes(sizes, this.#drawn)) this.#build(sizes);
    this.#drawn = sizes;
    const most = Math.max(...sizes.map(([, , batches]) => batches));
    for (const [i, bar] of [...this.#bars.children].entries()) {
      const share = sizes[i]![2] / most;
      (bar.firstElementChild as HTMLElement).style.height = `${Math.max(2, Math.round(34 * share))}px`;
    }
  }

  #build(sizes: readonly SizeCount[]): void {
    const isRanges = sizes.some(([from, to]) => from !== to);
    this.#caption.textContent = isRanges ? 'Batches by rows, up to' : 'Batches by rows';
    const bars = sizes.map((size) =>
      el('span', { class: 'sizes-bar' }, [el('i'), el('span', {}, [sizeLabel(size)])]),
    );
    this.#bars.replaceChildren(...bars);
  }
}

function sameSizes(left: readonly SizeCount[], right: readonly SizeCount[]): boolean {
  return left.length === right.length && left.every(([, to], i) => to === right[i]![1]);
}

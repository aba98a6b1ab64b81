import { el, say } from '../dom.js';
import type { Selection } from './selection.js';
import type { TimelineModel } from './timeline-model.js';
import type { Track } from './track.js';
import { sentenceOf } from './words.js';

const UNSEEN_MS = 2000;

const KEYS: Readonly<Record<string, (index: number, last: number) => number>> = {
  ArrowDown: (index, last) => Math.min(last, index + 1),
  ArrowUp: (index) => Math.max(0, index - 1),
  Home: () => 0,
  End: (_, last) => last,
};

/** Rows of the timeline for keyboard and screen reader: a list box, whose options are not drawn in the picture. */
export class RequestList {
  readonly element: HTMLElement;
  readonly #model: TimelineModel;
  readonly #selection: Selection;
  readonly #options = new Map<number, HTMLElement>();
  #writtenMs = Number.NEGATIVE_INFINITY;

  constructor(canvas: HTMLCanvasElement, model: TimelineModel, selection: Selection) {
    this.#model = model;
    this.#selection = selection;
    const attributes = {
      class: 'timeline-list',
      role: 'listbox',
      tabindex: 0,
      'aria-label': 'Requests in flight. Arrow keys go from one to the next.',
    };
    this.element = el('div', attributes, [canvas], {
      keydown: (event) => this.#press(event),
      focus: () => this.update(),
      blur: () => selection.choose(null),
    });
    selection.onChange(() => this.#mark());
  }

  /** Updates the sentences, less often while the list has no focus, since they cost layout. */
  update(): void {
    const nowMs = performance.now();
    const isIn = document.activeElement === this.element;
    if (
      !isIn &&
      this.#options.size > 0 &&
      nowMs - this.#writtenMs < UNSEEN_MS &&
      this.#model.latest?.requests.length !== 0
    )
      return;
    this.#writtenMs = nowMs;
    const tracks = this.#inFlight();
    const ids = new Set(tracks.map(({ id }) => id));
    for (const [id, option] of this.#options) {
      if (ids.has(id)) continue;
      option.remove();
      this.#options.delete(id);
    }
    for (const track of tracks) {
      let option = this.#options.get(track.id);
      if (option === undefined) {
        option = el('div', { role: 'option', id: `request-${track.id}`, class: 'visually-hidden' });
        this.#options.set(track.id, option);
        this.element.append(option);
      }
      const text = sentenceOf(track);
      say(option, text);
    }
    this.#mark();
  }

  /** Tracks in flight, in the order of their rows. */
  #inFlight(): Track[] {
    return Array.from(this.#model.tracks)
      .filter(({ end, lane }) => end === null && lane >= 0)
      .sort((left, right) => left.lane - right.lane);
  }

  #press(event: KeyboardEvent): void {
    if (event.key === 'Escape') this.#selection.choose(null);
    const move = KEYS[event.key];
    if (move === undefined) return;
    event.preventDefault();
    const tracks = this.#inFlight();
    if (tracks.length === 0) return;
    const index = tracks.findIndex(({ id }) => id === this.#selection.chosen);
    this.update();
    this.#selection.choose(tracks[move(index, tracks.length - 1)]!.id);
  }

  #mark(): void {
    const { chosen } = this.#selection;
    for (const [id, option] of this.#options) option.setAttribute('aria-selected', String(id === chosen));
    const isThere = chosen !== null && this.#options.has(chosen);
    if (isThere) this.element.setAttribute('aria-activedescendant', `request-${chosen}`);
    else this.element.removeAttribute('aria-activedescendant');
  }
}

import { el } from '../dom.js';
import type { TimelineModel } from './timeline-model.js';
import { count, doingOf, milliseconds } from './words.js';

const HEAD = ['Request', 'State', 'Prompt', 'From cache', 'Generated', 'Blocks', 'First token', 'Pauses'];
/** Column behind these where a request has one. */
const ADAPTER = 'Adapter';

/** The requests as a table, for those who do not see the picture or want the numbers. A closed table costs nothing. */
export class RequestTable {
  readonly element: HTMLDetailsElement;
  readonly #head = el('tr');
  readonly #body = el('tbody');
  readonly #model: TimelineModel;

  constructor(model: TimelineModel) {
    this.#model = model;
    this.element = el(
      'details',
      { class: 'as-table' },
      [
        el('summary', {}, ['In flight as a table']),
        el('div', { class: 'table-scroll', tabindex: 0, role: 'group', 'aria-label': 'Requests in flight' }, [
          el('table', {}, [el('thead', {}, [this.#head]), this.#body]),
        ]),
      ],
      { toggle: () => this.update() },
    );
  }

  update(): void {
    if (!this.element.open) return;
    const inFlight = Array.from(this.#model.tracks).filter(({ end }) => end === null);
    const hasAdapters = inFlight.some(({ adapter }) => adapter !== null);
    const head = hasAdapters ? [...HEAD, ADAPTER] : HEAD;
    if (this.#head.childElementCount !== head.length) {
      this.#head.replaceChildren(...head.map((name) => el('th', { scope: 'col' }, [name])));
    }
    const rows = inFlight.map((track) => {
      const { promptTokens, cachedTokens, generated, maxNewTokens, blocks, firstTokenMs, pauses } =
        track.numbers;
      const first = firstTokenMs < 0 ? '–' : milliseconds(firstTokenMs);
      const done = `${count(generated)} of ${count(maxNewTokens)}`;
      const cells = [count(promptTokens), count(cachedTokens), done, count(blocks), first, count(pauses)];
      return el('tr', {}, [
        el('th', { scope: 'row' }, [String(track.id)]),
        el('td', {}, [doingOf(track)]),
        ...cells.map((text) => el('td', { class: 'number' }, [text])),
        hasAdapters && el('td', {}, [track.adapter ?? '–']),
      ]);
    });
    const none = el('tr', {}, [el('td', { colspan: head.length }, ['Nothing in flight.'])]);
    this.#body.replaceChildren(...(rows.length > 0 ? rows : [none]));
  }
}

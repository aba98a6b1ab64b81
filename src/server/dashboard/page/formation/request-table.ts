import { el } from '../dom.js';
import type { TimelineModel } from './timeline-model.js';
import { count, doingOf, milliseconds } from './words.js';

const HEAD = ['Request', 'State', 'Prompt', 'From cache', 'Generated', 'Blocks', 'First token', 'Pauses'];

/** The requests as a table, for those who do not see the picture or want the numbers. A closed table costs nothing. */
export class RequestTable {
  readonly element: HTMLDetailsElement;
  readonly #body = el('tbody');
  readonly #model: TimelineModel;

  constructor(model: TimelineModel) {
    this.#model = model;
    const head = el(
      'tr',
      {},
      HEAD.map((name) => el('th', { scope: 'col' }, [name])),
    );
    this.element = el(
      'details',
      { class: 'as-table' },
      [
        el('summary', {}, ['In flight as a table']),
        el('div', { class: 'table-scroll', tabindex: 0, role: 'group', 'aria-label': 'Requests in flight' }, [
          el('table', {}, [el('thead', {}, [head]), this.#body]),
        ]),
      ],
      { toggle: () => this.update() },
    );
  }

  update(): void {
    if (!this.element.open) return;
    const inFlight = Array.from(this.#model.tracks).filter(({ end }) => end === null);
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
      ]);
    });
    const none = el('tr', {}, [el('td', { colspan: HEAD.length }, ['Nothing in flight.'])]);
    this.#body.replaceChildren(...(rows.length > 0 ? rows : [none]));
  }
}

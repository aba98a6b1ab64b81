import type { ModelRow, ModelsEvent } from '../../../feeds/models-event.js';
import { el, say } from '../dom.js';
import { plural } from '../formation/words.js';
import type { MountPanel } from '../panels.js';
import { ModelCard } from './model-card.js';
import { moreWords, summaryOf } from './model-words.js';

/** Panel with every model of the server, of tensors and of texts: state, instances, queue and batches. */
export const mountModels: MountPanel = (root, { feed, repository }) => {
  const summary = el('p', { class: 'models-summary', role: 'status' });
  const requests = el('p', { class: 'models-requests' });
  const answering = el('ul', { class: 'models', 'aria-label': 'Models that answer' });
  const others = el('ul', { class: 'models', 'aria-label': 'Models that do not answer' });
  const more = el('p', { class: 'models-more' });
  root.append(
    el('div', { class: 'live-head' }, [
      el('div', {}, [
        el('h2', { class: 'panel-title' }, ['Models']),
        el('p', { class: 'panel-lead' }, [
          'What each does now, and since it was loaded. Times are means: of a request in the queue, of a batch in the model.',
        ]),
      ]),
    ]),
    summary,
    requests,
    answering,
    others,
    more,
  );
  const cards = new Map<string, ModelCard>();
  let latest: ModelsEvent | null = null;
  const show = () => {
    // A server of one model of texts shows all of it above.
    root.hidden = latest === null || (isOneGenerator(latest) && feed.state.kind !== 'idle');
  };
  repository.on('reset', () => {
    cards.clear();
    answering.replaceChildren();
    others.replaceChildren();
  });
  repository.on('models', (event) => {
    latest = event;
    root.toggleAttribute('data-empty', event.models === 0);
    show();
    if (root.hidden) return;
    const said = summaryOf(event);
    say(summary, said);
    requests.textContent = `${plural(event.waiting, 'request')} waiting, ${event.running} running`;
    more.textContent = moreWords(event);
    more.hidden = more.textContent === '';
    forget(cards, event);
    arrange(answering, cards, event, ({ work }) => work !== null);
    arrange(others, cards, event, ({ work }) => work === null);
  });
  feed.on('state', show);
};

function isOneGenerator({ models, rows }: ModelsEvent): boolean {
  const [row] = rows;
  return models === 0 || (models === 1 && row?.state === 'READY' && row.work?.kind === 'generator');
}

const keyOf = ({ name, version }: ModelRow) => JSON.stringify([name, version]);

function forget(cards: Map<string, ModelCard>, { rows }: ModelsEvent): void {
  const keys = new Set(rows.map(keyOf));
  for (const [key, { element }] of cards) {
    if (keys.has(key)) continue;
    element.remove();
    cards.delete(key);
  }
}

/** Updates the cards of those rows that belong into the list, and puts them in order. */
function arrange(
  list: HTMLElement,
  cards: Map<string, ModelCard>,
  { rows, timeMs }: ModelsEvent,
  belongs: (row: ModelRow) => boolean,
): void {
  let next = list.firstElementChild;
  for (const row of rows.filter(belongs)) {
    const key = keyOf(row);
    let card = cards.get(key);
    if (card === undefined) {
      card = new ModelCard(row);
      cards.set(key, card);
    }
    card.update(row, timeMs);
    if (card.element === next) next = next.nextElementSibling;
    else list.insertBefore(card.element, next);
  }
}

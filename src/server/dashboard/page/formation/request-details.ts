import { el } from '../dom.js';
import type { Selection } from './selection.js';
import type { TimelineModel } from './timeline-model.js';
import { doingOf, numbersOf, plural } from './words.js';

/** Line below the timeline about the selected request, else about all requests in flight. Its height is constant. */
export class RequestDetails {
  readonly element = el('div', { class: 'details' });
  readonly #model: TimelineModel;
  readonly #selection: Selection;

  constructor(model: TimelineModel, selection: Selection) {
    this.#model = model;
    this.#selection = selection;
    selection.onChange(() => this.update());
  }

  update(): void {
    const { id } = this.#selection;
    const track = id === null ? undefined : this.#model.track(id);
    if (track === undefined) {
      this.element.replaceChildren(el('span', {}, [summaryOf(this.#model)]));
      return;
    }
    const numbers = numbersOf(track).map(([name, value]) =>
      el('span', {}, [el('b', {}, [value]), ` ${name}`]),
    );
    this.element.replaceChildren(
      el('span', { class: 'details-name' }, [`Request ${track.id}`]),
      el('span', {}, [doingOf(track)]),
      ...numbers,
    );
  }
}

/** Summary: "12 in flight: 9 generating, 2 reading their prompts, 1 paused. 4 waiting." */
function summaryOf({ latest, unplaced }: TimelineModel): string {
  if (latest === null) return 'Nothing is known yet.';
  const states = [0, 0, 0, 0];
  for (const row of latest.requests) states[row[2]]! += 1;
  const [listed = 0, context = 0, generating = 0, paused = 0] = states;
  const waiting = Math.max(listed, latest.queued);
  const inFlight = context + generating + paused;
  if (inFlight + waiting === 0) return 'Nothing in flight.';
  const parts = [
    generating > 0 ? `${generating} generating` : '',
    context > 0 ? `${context} reading ${context === 1 ? 'its prompt' : 'their prompts'}` : '',
    paused > 0 ? `${paused} paused` : '',
  ].filter((part) => part !== '');
  const sentences = [
    parts.length > 0 ? `${inFlight} in flight: ${parts.join(', ')}.` : `${inFlight} in flight.`,
  ];
  if (waiting > 0) sentences.push(`${waiting} waiting.`);
  if (unplaced > 0) sentences.push(`${plural(unplaced, 'more row')} below.`);
  return sentences.join(' ');
}

import { el, say } from '../dom.js';
import type { OfferedEntry } from './catalogue-client.js';
import { bytesText, factsOf, progressWords, stateWords } from './catalogue-words.js';

/** What the button of a row does. */
export type RowAction = 'Download' | 'Resume' | 'Cancel' | 'Use';

/** What the page may do with the models, and what it is doing. */
export interface RowTerms {
  mayDownload: boolean;
  /** What is under way for this model, such as Loading; null: nothing. */
  doing: string | null;
  /** Why the latest action failed; null: it did not. */
  problem: string | null;
}

/** A model with its facts, its progress and its button. */
export class CatalogueRow {
  readonly element: HTMLLIElement;
  readonly #badge = el('span', { class: 'catalogue-state' });
  readonly #facts = el('p', { class: 'catalogue-facts' });
  readonly #bar: HTMLProgressElement;
  readonly #progress = el('p', { class: 'catalogue-progress' });
  readonly #problem = el('p', { class: 'catalogue-problem' });
  readonly #verb = document.createTextNode('');
  readonly #button: HTMLButtonElement;
  #action: RowAction | null = null;
  #shownFacts = '';

  constructor(name: string, act: (action: RowAction) => void) {
    this.#bar = el('progress', { class: 'catalogue-bar', 'aria-label': `Download of ${name}` });
    this.#button = el(
      'button',
      { class: 'button', type: 'button' },
      [this.#verb, el('span', { class: 'visually-hidden' }, [` ${name}`])],
      {
        click: () => {
          if (this.#action !== null && !this.#button.hasAttribute('aria-disabled')) act(this.#action);
        },
      },
    );
    this.element = el('li', { class: 'catalogue-row' }, [
      el('div', { class: 'catalogue-text' }, [
        el('div', { class: 'catalogue-head' }, [el('h3', {}, [name]), this.#badge]),
        this.#facts,
        this.#bar,
        this.#progress,
        this.#problem,
      ]),
      this.#button,
    ]);
  }

  /** Lines break between facts, not within one. */
  #showFacts(facts: readonly string[]): void {
    const text = facts.join(' · ');
    if (text === this.#shownFacts) return;
    this.#shownFacts = text;
    const parts = facts.map((fact, i) => el('span', {}, [i < facts.length - 1 ? `${fact} ·` : fact]));
    this.#facts.replaceChildren(...parts.flatMap((part) => [part, ' ']));
  }

  update(entry: OfferedEntry, { mayDownload, doing, problem }: RowTerms): void {
    const { state, bytes, done_bytes: done } = entry;
    this.element.dataset.state = state;
    say(this.#badge, stateWords(entry));
    this.#showFacts(factsOf(entry));
    const hasProgress = state === 'downloading' || state === 'partial';
    this.#bar.hidden = !hasProgress || (state === 'partial' && bytes === null);
    if (bytes === null) this.#bar.removeAttribute('value');
    else {
      this.#bar.max = bytes;
      this.#bar.value = done ?? 0;
      this.#bar.textContent = bytesText(done ?? 0);
    }
    this.#progress.hidden = !hasProgress;
    say(this.#progress, hasProgress ? progressWords(entry) : '');
    const wrong = problem ?? entry.problem ?? '';
    this.#problem.hidden = wrong === '';
    say(this.#problem, wrong);
    this.#action = actionOf(entry, mayDownload);
    this.#button.hidden = this.#action === null;
    const verb = doing ?? this.#action ?? '';
    if (this.#verb.data !== verb) this.#verb.data = verb;
    this.#button.classList.toggle('primary', this.#action === 'Use' && state === 'stored');
    // A button that was disabled would lose the focus.
    if (doing === null) this.#button.removeAttribute('aria-disabled');
    else this.#button.setAttribute('aria-disabled', 'true');
  }
}

/** Null: there is nothing to do with it. */
function actionOf({ state, fits, problem }: OfferedEntry, mayDownload: boolean): RowAction | null {
  if (state === 'loaded') return 'Use';
  if (state === 'stored') return problem === null ? 'Use' : null;
  if (!mayDownload) return null;
  if (state === 'downloading') return 'Cancel';
  if (state === 'partial') return 'Resume';
  return fits === false ? null : 'Download';
}

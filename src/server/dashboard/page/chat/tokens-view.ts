import { el } from '../dom.js';
import type { TokenLogProb } from './stream-chat.js';

/** Tokens of an answer that are shown at most. */
const MAX_TOKENS = 10_000;
const NOTHING = 'Point at a token, or choose one with the arrow keys.';

/** The tokens of an answer with their probabilities, folded until the reader opens them. Pointed at, one has those that could have been in its place. */
export class TokensView {
  readonly element: HTMLDetailsElement;
  readonly #tokens: TokenLogProb[] = [];
  readonly #list: HTMLElement;
  readonly #said = el('p', { class: 'tokens-said', role: 'status' }, [NOTHING]);
  #chosen = -1;

  constructor() {
    this.#list = el(
      'div',
      { class: 'tokens-list', tabindex: '0', role: 'group', 'aria-label': 'Tokens with their probabilities' },
      [],
      {
        pointerover: ({ target }) => this.#choose([...this.#list.children].indexOf(target as Element)),
        keydown: (event) => {
          const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
          if (step === undefined) return;
          event.preventDefault();
          this.#choose(Math.min(this.#list.childElementCount - 1, Math.max(0, this.#chosen + step)));
        },
      },
    );
    this.element = el(
      'details',
      { class: 'tokens', hidden: true },
      [el('summary', {}, ['Probabilities']), this.#list, this.#said],
      { toggle: () => this.#draw() },
    );
  }

  add(tokens: readonly TokenLogProb[]): void {
    this.#tokens.push(...tokens.slice(0, MAX_TOKENS - this.#tokens.length));
    this.element.hidden = this.#tokens.length === 0;
    this.#draw();
  }

  #draw(): void {
    if (!this.element.open) return;
    for (const { token, logprob } of this.#tokens.slice(this.#list.childElementCount)) {
      const piece = el('span', {}, [token]);
      // The less probable, the stronger.
      piece.style.setProperty('--doubt', `${Math.round(60 * (1 - Math.exp(logprob)))}%`);
      this.#list.append(piece);
    }
  }

  #choose(index: number): void {
    const token = this.#tokens[index];
    if (token === undefined) return;
    this.#list.children[this.#chosen]?.removeAttribute('data-chosen');
    this.#list.children[index]!.setAttribute('data-chosen', '');
    this.#chosen = index;
    this.#said.textContent = tokenWords(token);
  }
}

/** A token with its probability, and the others that were probable in its place. */
export function tokenWords({ token, logprob, top_logprobs: top }: TokenLogProb): string {
  const words = (one: { token: string; logprob: number }) =>
    `${JSON.stringify(one.token)} ${(100 * Math.exp(one.logprob)).toFixed(1)} %`;
  const others = top.filter((one) => one.token !== token).map(words);
  const found = `${words({ token, logprob })}, log-prob ${logprob.toFixed(2)}`;
  return others.length === 0 ? found : `${found}; in its place: ${others.join(', ')}`;
}

import { el } from '../dom.js';
import type { Page } from '../panels.js';
import { Announcer } from './announcer.js';
import { AnswerTiming } from './answer-timing.js';
import { AnswerView } from './answer-view.js';
import { Composer } from './composer.js';
import { chatRequest, type Turn } from './conversation.js';
import { emptyChat } from './empty-chat.js';
import { ParameterForm, type Parameters } from './parameters.js';
import { QuestionView } from './question-view.js';
import { ChatProblem, streamChat } from './stream-chat.js';

/** Distance from the end, in pixels, within which the reader is taken to read along. */
const NEAR_END = 60;

/** Panel with a conversation with the model chosen in the header. */
export class ChatPanel {
  readonly #page: Page;
  readonly #parameters = new ParameterForm();
  readonly #composer: Composer;
  readonly #log = el('div', {
    class: 'chat-log',
    tabindex: '0',
    role: 'region',
    'aria-label': 'Conversation',
  });
  readonly #announcer = new Announcer();
  readonly #clear: HTMLButtonElement;
  readonly #gone = el('p', { class: 'chat-gone', role: 'status', hidden: true });
  #turns: Turn[] = [];
  #running: AbortController | null = null;
  #readsAlong = true;

  constructor(root: HTMLElement, page: Page) {
    this.#page = page;
    this.#composer = new Composer(this.#parameters, {
      send: (text) => this.#ask(text, this.#turns.length),
      stop: () => this.stop(),
    });
    this.#clear = el('button', { class: 'button quiet', type: 'button' }, ['Clear'], {
      click: () => this.#clearAll(),
    });
    root.append(
      el('div', { class: 'chat-head' }, [el('h2', { class: 'panel-title' }, ['Chat']), this.#clear]),
      this.#log,
      this.#announcer.element,
      this.#gone,
      this.#composer.element,
    );
    this.#log.addEventListener('scroll', () => {
      const { scrollHeight, scrollTop, clientHeight } = this.#log;
      this.#readsAlong = scrollHeight - scrollTop - clientHeight < NEAR_END;
    });
    document.addEventListener('keydown', (event) => {
      if (event.key !== 'Escape' || event.defaultPrevented) return;
      if (document.querySelector('dialog[open]') === null) this.stop();
    });
    page.feed.on('reset', () => {
      if (this.#turns.length === 0) this.#showEmpty();
    });
    page.feed.on('state', (state) => {
      this.#gone.hidden = state.kind !== 'gone';
      this.#gone.textContent =
        state.kind === 'gone' ? `${goneWords(state.model)}; it gets this conversation.` : '';
    });
    this.#showEmpty();
    root.hidden = false;
  }

  /** Stops the answer in progress. */
  stop(): void {
    this.#running?.abort();
  }

  /** Asks a question in place of the turn `at` and all later turns. */
  #ask(question: string, at: number): void {
    const { model } = this.#page.feed;
    const parameters = this.#parameters.read();
    if (parameters === null) return;
    this.stop();
    if (this.#turns.length === 0) this.#log.replaceChildren();
    for (const { element } of this.#turns.splice(at)) element.remove();
    const timing = new AnswerTiming(performance.now());
    const view = new AnswerView(timing, {
      again: () => this.#ask(question, at),
      grew: () => this.#follow(),
      announce: (text) => this.#announcer.say(text),
    });
    const asked = new QuestionView(question, (text) => this.#ask(text, at));
    const element = el('div', { class: 'turn' }, [asked.element, view.element]);
    this.#turns.push({ question, answer: view, element });
    this.#log.append(element);
    this.#clear.hidden = false;
    this.#readsAlong = true;
    this.#follow();
    if (model === null) {
      this.#refuse(view);
      return;
    }
    this.#page.choice.want(model);
    void this.#answer(view, timing, model, parameters);
  }

  /** Shows that there is no model to ask. */
  #refuse(view: AnswerView): void {
    const { state } = this.#page.feed;
    if (state.kind === 'gone') view.fail(`${goneWords(state.model)}.`);
    else if (state.kind === 'locked') view.fail('This server needs an API key.');
    else view.fail('The server has not yet said what it serves.');
    if (state.kind === 'locked') this.#page.session.askForKey();
  }

  async #answer(
    view: AnswerView,
    timing: AnswerTiming,
    model: string,
    parameters: Parameters,
  ): Promise<void> {
    const running = new AbortController();
    this.#running = running;
    this.#composer.setAnswering(true);
    this.#announcer.clear();
    this.#announcer.say('Answering');
    try {
      const request = chatRequest(model, this.#turns, parameters);
      view.end(await streamChat(this.#page.session, request, view, timing, running.signal));
    } catch (error) {
      if (!(error instanceof ChatProblem)) throw error;
      view.fail(error.message);
    } finally {
      if (this.#running === running) {
        this.#running = null;
        this.#composer.setAnswering(false);
      }
    }
  }

  #follow(): void {
    if (this.#readsAlong) this.#log.scrollTop = this.#log.scrollHeight;
  }

  #clearAll(): void {
    this.stop();
    this.#turns = [];
    this.#showEmpty();
    this.#composer.focus();
  }

  #showEmpty(): void {
    this.#clear.hidden = true;
    this.#log.replaceChildren(
      emptyChat(this.#page.feed.model, (text) => {
        this.#ask(text, 0);
        this.#composer.focus();
      }),
    );
  }
}

function goneWords(model: string): string {
  return `\u201c${model}\u201d is not served any more. Choose another model at the top of the page`;
}

import { el } from '../dom.js';
import type { Page } from '../panels.js';
import { Announcer } from './announcer.js';
import { AnswerTiming } from './answer-timing.js';
import { AnswerView } from './answer-view.js';
import { Composer } from './composer.js';
import { ContextMeter } from './context-meter.js';
import { chatRequest, type Turn } from './conversation.js';
import { ConversationList } from './conversation-list.js';
import { ConversationStore, type StoredConversation, titleIn } from './conversation-store.js';
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
  readonly #store = new ConversationStore(globalThis.indexedDB ?? null);
  /** Id under which the conversation on the page is kept. */
  #id = newId();
  /** When the state on the page was kept, in milliseconds since 1970; null: it was not. */
  #keptMs: number | null = null;
  #saving: Promise<void> = Promise.resolve();
  readonly #meter = new ContextMeter();
  /** Tokens that the conversation takes; null: not known. */
  #contextTokens: number | null = null;
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
    const list = new ConversationList(this.#store, {
      open: (conversation) => {
        this.#restore(conversation);
        this.#composer.focus();
      },
      removed: (id) => {
        if (id === this.#id) this.#clearAll();
      },
    });
    this.#clear = el('button', { class: 'button quiet', type: 'button' }, ['New chat'], {
      click: () => this.#clearAll(),
    });
    root.append(
      el('div', { class: 'chat-head' }, [
        el('h2', { class: 'panel-title' }, ['Chat']),
        el('div', { class: 'chat-tools' }, [this.#clear, list.element]),
      ]),
      this.#log,
      this.#announcer.element,
      this.#gone,
      this.#meter.element,
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
      this.#showContext(this.#contextTokens);
      this.#parameters.showDefaults(page.choice.find(page.feed.model)?.sampling_defaults ?? {});
      if (this.#turns.length === 0) this.#showEmpty();
    });
    page.feed.on('state', (state) => {
      this.#gone.hidden = state.kind !== 'gone';
      this.#gone.textContent =
        state.kind === 'gone' ? `${goneWords(state.model)}; it gets this conversation.` : '';
    });
    this.#showEmpty();
    root.hidden = false;
    void this.#restoreLatest();
  }

  /** Stops the answer in progress. */
  stop(): void {
    this.#running?.abort();
  }

  /** Asks a question in place of the turn `at` and all later turns. Returns false where a parameter is wrong. */
  #ask(question: string, at: number): boolean {
    const { model } = this.#page.feed;
    const parameters = this.#parameters.read();
    if (parameters === null) return false;
    this.stop();
    if (this.#turns.length === 0) this.#log.replaceChildren();
    for (const { element } of this.#turns.splice(at)) element.remove();
    const timing = new AnswerTiming(performance.now());
    const view = this.#addTurn(question, at, timing);
    this.#clear.hidden = false;
    this.#readsAlong = true;
    this.#follow();
    if (model === null) {
      this.#refuse(view);
      return true;
    }
    this.#page.choice.want(model);
    void this.#answer(view, timing, model, parameters);
    return true;
  }

  #addTurn(question: string, at: number, timing: AnswerTiming): AnswerView {
    const view = new AnswerView(timing, {
      again: () => this.#ask(question, at),
      grew: () => this.#follow(),
      announce: (text) => this.#announcer.say(text),
    });
    const asked = new QuestionView(question, (text) => this.#ask(text, at));
    const element = el('div', { class: 'turn' }, [asked.element, view.element]);
    this.#turns.push({ question, answer: view, element });
    this.#log.append(element);
    return view;
  }

  /** Keeps the conversation in the browser, when what was kept before is. */
  #save(): void {
    const turns = this.#turns
      .filter(({ answer }) => answer.text !== '' || answer.reasoning !== '')
      .map(({ question, answer: { text, reasoning } }) => ({ question, answer: text, reasoning }));
    if (turns.length === 0) return;
    const known = this.#contextTokens === null ? {} : { contextTokens: this.#contextTokens };
    const conversation = { id: this.#id, model: this.#page.feed.model, turns, ...known };
    this.#saving = this.#saving.then(() => this.#keep(conversation));
  }

  /** Beside the conversation that is kept under this id, where another tab has gone on with that. */
  async #keep(conversation: Omit<StoredConversation, 'title' | 'changedMs'>): Promise<void> {
    const stored = await this.#store.find(conversation.id);
    // The page may show another one by now.
    const isShown = this.#id === conversation.id;
    const isOther = isShown && stored !== null && stored.changedMs !== this.#keptMs;
    const id = isOther ? newId() : conversation.id;
    const changedMs = Date.now();
    if (isShown) {
      this.#id = id;
      this.#keptMs = changedMs;
      remember(id);
    }
    await this.#store.put({ ...conversation, id, title: titleIn(conversation.turns, stored), changedMs });
  }

  /** Shows a conversation that was kept, to go on with it. */
  #restore({ id, changedMs, turns, contextTokens }: StoredConversation): void {
    this.stop();
    this.#showContext(contextTokens ?? null);
    this.#id = id;
    this.#keptMs = changedMs;
    this.#turns = [];
    this.#log.replaceChildren();
    for (const [at, { question, answer, reasoning }] of turns.entries()) {
      this.#addTurn(question, at, new AnswerTiming(performance.now())).restore(answer, reasoning);
    }
    this.#clear.hidden = false;
    this.#readsAlong = true;
    this.#follow();
  }

  /** After a reload the conversation of this tab goes on. */
  async #restoreLatest(): Promise<void> {
    const id = remembered();
    const found = id === null ? null : await this.#store.find(id);
    if (found !== null && this.#turns.length === 0) this.#restore(found);
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
      const end = await streamChat(this.#page.session, request, view, timing, running.signal);
      view.end(end);
      if (this.#running === running && end.contextTokens !== null) this.#showContext(end.contextTokens);
    } catch (error) {
      if (!(error instanceof ChatProblem)) throw error;
      this.#announcer.clear();
      view.fail(error.message);
    } finally {
      if (this.#running === running) {
        this.#running = null;
        this.#composer.setAnswering(false);
        this.#save();
      }
    }
  }

  #showContext(tokens: number | null): void {
    this.#contextTokens = tokens;
    this.#meter.show(tokens, this.#page.choice.find(this.#page.feed.model)?.max_model_len ?? null);
    this.#follow();
  }

  #follow(): void {
    if (this.#readsAlong) this.#log.scrollTop = this.#log.scrollHeight;
  }

  #clearAll(): void {
    this.stop();
    this.#turns = [];
    this.#id = newId();
    this.#keptMs = null;
    remember(null);
    this.#showContext(null);
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

/** Name under which a tab keeps the id of its conversation. */
const OPENED = 'skein-conversation';

/** Notes the conversation with which this tab goes on after a reload. Where the browser stores nothing, or is full, there is none. */
function remember(id: string | null): void {
  try {
    if (id === null) sessionStorage.removeItem(OPENED);
    else sessionStorage.setItem(OPENED, id);
  } catch {}
}

function remembered(): string | null {
  try {
    return sessionStorage.getItem(OPENED);
  } catch {
    return null;
  }
}

/** crypto.randomUUID needs HTTPS, which a server in a local network lacks. */
function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

function goneWords(model: string): string {
  return `\u201c${model}\u201d is not served any more. Choose another model at the top of the page`;
}

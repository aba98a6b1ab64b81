import { el } from '../dom.js';
import type { Page } from '../panels.js';
import { Announcer } from './announcer.js';
import { AnswerTiming } from './answer-timing.js';
import { AnswerView } from './answer-view.js';
import { type Attachment, isPicture } from './attachments/attachment.js';
import { FileReading } from './attachments/file-reading.js';
import { AttachmentViewer } from './attachments/viewer.js';
import { Composer } from './composer.js';
import { ContextMeter } from './context-meter.js';
import { type AskedModel, chatRequest, type Turn } from './conversation.js';
import { ConversationKeeper } from './conversation-keeper.js';
import { ConversationList } from './conversation-list.js';
import { ConversationStore, type Kept } from './conversation-store.js';
import { emptyChat } from './empty-chat.js';
import { ParameterForm, type Parameters } from './parameters.js';
import { QuestionView } from './question-view.js';
import type { StoredConversation } from './stored-conversation.js';
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
  readonly #keeper = new ConversationKeeper(this.#store, (kept) => this.#showKept(kept));
  readonly #reading: FileReading;
  readonly #viewer = new AttachmentViewer();
  readonly #meter = new ContextMeter();
  /** Tokens that the conversation takes; null: not known. */
  #contextTokens: number | null = null;
  readonly #gone = el('p', { class: 'chat-note chat-gone', role: 'status', hidden: true });
  /** Says that there is no room to keep the conversation. */
  readonly #full = el('p', { class: 'chat-note chat-gone', role: 'status', hidden: true });
  /** Says that pictures of the conversation are not sent. */
  readonly #blind = el('p', { class: 'chat-note', role: 'status', hidden: true });
  #turns: Turn[] = [];
  #running: AbortController | null = null;
  #readsAlong = true;

  constructor(root: HTMLElement, page: Page) {
    this.#page = page;
    this.#reading = new FileReading(page);
    const files = {
      read: this.#reading.read,
      others: () => this.#turns.flatMap(({ answer, attachments }) => (answer.text === '' ? [] : attachments)),
    };
    this.#composer = new Composer(this.#parameters, files, {
      send: (text, attachments) => this.#ask(text, attachments, this.#turns.length),
      stop: () => this.stop(),
      whyNot: (attachments) => (attachments.some(isPicture) ? this.#reading.whyNoPictures() : null),
    });
    const list = new ConversationList(this.#store, {
      open: (conversation) => {
        this.#restore(conversation);
        this.#composer.focus();
      },
      removed: (id) => {
        if (id === this.#keeper.id) this.#clearAll();
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
      this.#full,
      this.#blind,
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
      this.#showBlind();
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
  #ask(question: string, attachments: readonly Attachment[], at: number): boolean {
    const { model } = this.#page.feed;
    const parameters = this.#parameters.read();
    if (parameters === null) return false;
    this.stop();
    if (this.#turns.length === 0) this.#log.replaceChildren();
    for (const { element } of this.#turns.splice(at)) element.remove();
    const timing = new AnswerTiming(performance.now());
    const view = this.#addTurn(question, attachments, at, timing);
    this.#showBlind();
    this.#clear.hidden = false;
    this.#readsAlong = true;
    this.#follow();
    if (model === null) {
      this.#refuse(view);
      return true;
    }
    this.#page.choice.want(model);
    void this.#answer(view, timing, { id: model, sees: this.#reading.sees }, parameters);
    return true;
  }

  #addTurn(
    question: string,
    attachments: readonly Attachment[],
    at: number,
    timing: AnswerTiming,
  ): AnswerView {
    const view = new AnswerView(timing, {
      again: () => this.#ask(question, attachments, at),
      grew: () => this.#follow(),
      announce: (text) => this.#announcer.say(text),
    });
    const asked = new QuestionView(question, attachments, {
      resend: (text) => this.#ask(text, attachments, at),
      open: (attachment) => this.#viewer.open(attachment),
    });
    const element = el('div', { class: 'turn' }, [asked.element, view.element]);
    this.#turns.push({ question, attachments, answer: view, element });
    this.#log.append(element);
    return view;
  }

  /** Keeps the conversation in the browser, when what was kept before is. */
  #save(): void {
    const turns = this.#turns
      .filter(({ answer }) => answer.text !== '' || answer.reasoning !== '')
      .map(({ question, attachments, answer: { text, reasoning } }) => ({
        question,
        ...(attachments.length === 0 ? {} : { attachments }),
        answer: text,
        reasoning,
      }));
    if (turns.length === 0) return;
    const known = this.#contextTokens === null ? {} : { contextTokens: this.#contextTokens };
    this.#keeper.save({ model: this.#page.feed.model, turns, ...known });
  }

  /** Shows a conversation that was kept, to go on with it. */
  #restore(conversation: StoredConversation): void {
    this.stop();
    this.#showContext(conversation.contextTokens ?? null);
    this.#keeper.begin(conversation);
    this.#showKept('all');
    this.#turns = [];
    this.#log.replaceChildren();
    for (const [at, { question, attachments = [], answer, reasoning }] of conversation.turns.entries()) {
      const timing = new AnswerTiming(performance.now());
      this.#addTurn(question, attachments, at, timing).restore(answer, reasoning);
    }
    this.#showBlind();
    this.#clear.hidden = false;
    this.#readsAlong = true;
    this.#follow();
  }

  /** After a reload the conversation of this tab goes on. */
  async #restoreLatest(): Promise<void> {
    const found = await this.#keeper.latest();
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
    model: AskedModel,
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

  #showKept(kept: Kept): void {
    this.#full.hidden = kept === 'all';
    const what = kept === 'texts' ? 'its files are' : 'it is';
    this.#full.textContent =
      kept === 'all'
        ? ''
        : `This browser has no room left for this conversation: ${what} not kept. Delete others to make room.`;
  }

  #showBlind(): void {
    const why = this.#reading.whyNoPictures();
    const hasPictures = this.#turns.some(({ attachments }) => attachments.some(isPicture));
    this.#blind.hidden = why === null || !hasPictures;
    this.#blind.textContent = this.#blind.hidden
      ? ''
      : `The pictures of this conversation are not sent: ${why}`;
  }

  #follow(): void {
    if (this.#readsAlong) this.#log.scrollTop = this.#log.scrollHeight;
  }

  #clearAll(): void {
    this.stop();
    this.#turns = [];
    this.#keeper.begin(null);
    this.#showKept('all');
    this.#showBlind();
    this.#showContext(null);
    this.#showEmpty();
    this.#composer.focus();
  }

  #showEmpty(): void {
    this.#clear.hidden = true;
    this.#log.replaceChildren(
      emptyChat(this.#page.feed.model, (text) => {
        this.#ask(text, [], 0);
        this.#composer.focus();
      }),
    );
  }
}

function goneWords(model: string): string {
  return `\u201c${model}\u201d is not served any more. Choose another model at the top of the page`;
}

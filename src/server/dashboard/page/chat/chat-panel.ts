import { el } from '../dom.js';
import type { Page } from '../panels.js';
import { Announcer } from './announcer.js';
import { AnswerTiming } from './answer-timing.js';
import type { AnswerView } from './answer-view.js';
import { type Attachment, isPicture } from './attachments/attachment.js';
import { FileReading } from './attachments/file-reading.js';
import { AttachmentViewer } from './attachments/viewer.js';
import { Composer } from './composer.js';
import { ContextMeter } from './context-meter.js';
import { type AskedModel, chatRequest } from './conversation.js';
import { ConversationKeeper } from './conversation-keeper.js';
import { ConversationList } from './conversation-list.js';
import { ConversationStore, type Kept } from './conversation-store.js';
import { ConversationView, type Turn } from './conversation-view.js';
import { emptyChat } from './empty-chat.js';
import { MessageTree } from './message-tree.js';
import { ParameterForm, type Parameters } from './parameters.js';
import { newId, type StoredConversation } from './stored-conversation.js';
import { type ChatEnd, ChatProblem, streamChat } from './stream-chat.js';
import { answerWithTools } from './tools/answer-with-tools.js';
import { responseRequest } from './tools/response-request.js';
import { ToolChoice } from './tools/tool-choice.js';

/** Panel with a conversation with the model chosen in the header. */
export class ChatPanel {
  readonly #page: Page;
  readonly #parameters = new ParameterForm();
  readonly #composer: Composer;
  readonly #tools: ToolChoice;
  readonly #view: ConversationView;
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
  #running: AbortController | null = null;

  constructor(root: HTMLElement, page: Page) {
    this.#page = page;
    this.#reading = new FileReading(page);
    this.#tools = new ToolChoice(page.session);
    this.#view = new ConversationView({
      ask: (text, attachments, parent) => this.#ask(text, attachments, parent),
      again: (turn) => this.#again(turn),
      choose: (message) => this.#choose(message),
      open: (attachment) => this.#viewer.open(attachment),
      announce: (text) => this.#announcer.say(text),
    });
    const others = () =>
      this.#view.turns.flatMap(({ answer, question }) =>
        answer === null ? [] : (question.attachments ?? []),
      );
    this.#composer = new Composer(
      this.#parameters,
      { read: this.#reading.read, others },
      this.#tools.element,
      {
        send: (text, attachments) => this.#ask(text, attachments, this.#view.lastAnswer),
        stop: () => this.stop(),
        whyNot: (attachments) => (attachments.some(isPicture) ? this.#reading.whyNoPictures() : null),
      },
    );
    this.#clear = el('button', { class: 'button quiet', type: 'button' }, ['New chat'], {
      click: () => this.#clearAll(),
    });
    root.append(
      el('div', { class: 'chat-head' }, [
        el('h2', { class: 'panel-title' }, ['Chat']),
        el('div', { class: 'chat-tools' }, [this.#clear, this.#list().element]),
      ]),
      this.#view.element,
      this.#announcer.element,
      this.#gone,
      this.#full,
      this.#blind,
      this.#meter.element,
      this.#composer.element,
    );
    document.addEventListener('keydown', (event) => {
      if (event.key !== 'Escape' || event.defaultPrevented) return;
      if (document.querySelector('dialog[open]') === null) this.stop();
    });
    this.#follow(page.feed);
    this.#showEmpty();
    root.hidden = false;
    void this.#restoreLatest();
  }

  /** Stops the answer in progress. */
  stop(): void {
    this.#running?.abort();
  }

  #list(): ConversationList {
    return new ConversationList(this.#store, {
      open: (conversation) => {
        this.#restore(conversation);
        this.#composer.focus();
      },
      removed: (id) => {
        if (id === this.#keeper.id) this.#clearAll();
      },
      shown: () => this.#keeper.id,
    });
  }

  /** Keeps what is shown of the model up to date. */
  #follow(feed: Page['feed']): void {
    feed.on('reset', () => {
      void this.#tools.load();
      this.#showContext(this.#contextTokens);
      const { model } = feed;
      this.#parameters.showModel(model, this.#page.choice.find(model)?.sampling_defaults ?? {});
      if (this.#view.turns.length === 0) this.#showEmpty();
      this.#showBlind();
    });
    feed.on('state', (state) => {
      this.#gone.hidden = state.kind !== 'gone';
      this.#gone.textContent =
        state.kind === 'gone' ? `${goneWords(state.model)}; it gets this conversation.` : '';
    });
  }

  /** Asks a question after a message: a version of the others that come after it. Returns false where a parameter is wrong. */
  #ask(text: string, attachments: readonly Attachment[], parent: string | null): boolean {
    const parameters = this.#parameters.read();
    if (parameters === null) return false;
    this.stop();
    const files = attachments.length === 0 ? {} : { attachments };
    const question = { ...{ id: newId(), parent, text, ...files }, role: 'user' } as const;
    this.#view.cut(parent);
    this.#view.tree.add(question);
    const timing = new AnswerTiming(performance.now());
    this.#begin(this.#view.addTurn(question, timing), timing, parameters);
    return true;
  }

  /** Asks for another answer of a turn. What there is stays, as another version. */
  #again(turn: Turn): void {
    const parameters = this.#parameters.read();
    if (parameters === null) return;
    this.stop();
    const timing = new AnswerTiming(performance.now());
    this.#view.renew(turn, timing);
    this.#begin(turn, timing, parameters);
  }

  #choose(message: string): void {
    this.stop();
    this.#view.show(this.#view.tree.leafOf(message));
    this.#showContext(null);
    this.#showBlind();
    this.#save();
  }

  #begin(turn: Turn, timing: AnswerTiming, parameters: Parameters): void {
    const { model } = this.#page.feed;
    this.#view.showVersions();
    this.#showBlind();
    this.#clear.hidden = false;
    this.#view.readAlong();
    if (model === null) {
      this.#refuse(turn.answerView);
      return;
    }
    this.#page.choice.want(model);
    void this.#answer(turn, timing, { id: model, sees: this.#reading.sees }, parameters);
  }

  /** Keeps the conversation in the browser, when what was kept before is. */
  #save(): void {
    const { tree, leaf } = this.#view;
    const { messages } = tree;
    if (leaf === null || !messages.some(({ role }) => role === 'assistant')) return;
    const known = this.#contextTokens === null ? {} : { contextTokens: this.#contextTokens };
    this.#keeper.save({ model: this.#page.feed.model, messages, leaf, ...known });
  }

  /** Shows a conversation that was kept, to go on with it. */
  #restore(conversation: StoredConversation): void {
    this.stop();
    this.#showContext(conversation.contextTokens ?? null);
    this.#keeper.begin(conversation);
    this.#showKept('all');
    this.#view.begin(new MessageTree(conversation.messages), conversation.leaf);
    this.#showBlind();
    this.#clear.hidden = false;
  }

  /** After a reload the conversation of this tab goes on. */
  async #restoreLatest(): Promise<void> {
    const found = await this.#keeper.latest();
    if (found !== null && this.#view.turns.length === 0) this.#restore(found);
  }

  /** Shows that there is no model to ask. */
  #refuse(view: AnswerView): void {
    const { state } = this.#page.feed;
    if (state.kind === 'gone') view.fail(`${goneWords(state.model)}.`);
    else if (state.kind === 'locked') view.fail('This server needs an API key.');
    else view.fail('The server has not yet said what it serves.');
    if (state.kind === 'locked') this.#page.session.askForKey();
  }

  async #answer(turn: Turn, timing: AnswerTiming, model: AskedModel, parameters: Parameters): Promise<void> {
    const running = new AbortController();
    const { answerView: view } = turn;
    const { tree } = this.#view;
    this.#running = running;
    this.#composer.setAnswering(true);
    this.#announcer.clear();
    this.#announcer.say('Answering');
    try {
      const end = await this.#ended(turn, timing, model, parameters, running.signal);
      view.end(end);
      if (this.#running === running && end.contextTokens !== null) this.#showContext(end.contextTokens);
    } catch (error) {
      if (!(error instanceof ChatProblem)) throw error;
      this.#announcer.clear();
      view.fail(error.message);
    } finally {
      this.#keep(turn, view, tree);
      if (this.#running === running) {
        this.#running = null;
        this.#composer.setAnswering(false);
      }
      if (this.#view.tree === tree) this.#save();
    }
  }

  /** The answer's end: by a chat, or by responses where it may use tools. */
  #ended(
    { question, answerView: view }: Turn,
    timing: AnswerTiming,
    model: AskedModel,
    parameters: Parameters,
    signal: AbortSignal,
  ): Promise<ChatEnd> {
    const { session } = this.#page;
    const path = this.#view.tree.path(question.id);
    const { chosen } = this.#tools;
    if (chosen.length === 0)
      return streamChat(session, chatRequest(model, path, parameters), view, timing, signal);
    return answerWithTools(session, responseRequest(model, path, parameters, chosen), view, timing, signal);
  }

  /** Puts an answer into the tree, as far as it has come. */
  #keep(turn: Turn, view: AnswerView, tree: MessageTree): void {
    const { kept } = view;
    if (kept === null) return;
    const answer = { ...{ id: newId(), parent: turn.question.id }, ...kept, role: 'assistant' } as const;
    tree.add(answer);
    // Another answer may have been asked for meanwhile.
    if (turn.answerView === view) turn.answer = answer;
    if (this.#view.tree === tree) this.#view.showVersions();
  }

  #showContext(tokens: number | null): void {
    this.#contextTokens = tokens;
    this.#meter.show(tokens, this.#page.choice.find(this.#page.feed.model)?.max_model_len ?? null);
    this.#view.follow();
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
    const hasPictures = this.#view.turns.some(({ question }) => question.attachments?.some(isPicture));
    this.#blind.hidden = why === null || !hasPictures;
    this.#blind.textContent = this.#blind.hidden
      ? ''
      : `The pictures of this conversation are not sent: ${why}`;
  }

  #clearAll(): void {
    this.stop();
    this.#keeper.begin(null);
    this.#showKept('all');
    this.#showEmpty();
    this.#showBlind();
    this.#showContext(null);
    this.#composer.focus();
  }

  #showEmpty(): void {
    this.#clear.hidden = true;
    const shown = emptyChat(this.#page.feed.model, (text) => {
      this.#ask(text, [], null);
      this.#composer.focus();
    });
    this.#view.clear(shown);
  }
}

function goneWords(model: string): string {
  return `\u201c${model}\u201d is not served any more. Choose another model at the top of the page`;
}

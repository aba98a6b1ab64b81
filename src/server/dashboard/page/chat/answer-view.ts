import { el } from '../dom.js';
import { type AnswerTiming, milliseconds, thoughtWords } from './answer-timing.js';
import { copyText } from './copy-text.js';
import { MarkdownView } from './markdown/markdown-view.js';
import { promptWords } from './prompt-figures.js';
import type { StoredMessage } from './stored-conversation.js';
import { type ChatEnd, endNote, type TokenLogProb } from './stream-chat.js';
import { TokensView } from './tokens-view.js';
import type { ToolListener } from './tools/answer-with-tools.js';
import { CallsView } from './tools/calls-view.js';
import type { ApprovalRequest, ResponseItem } from './tools/tool-call.js';

export interface AnswerActions {
  again(): void;
  /** Called when the answer has become longer. */
  grew(): void;
  /** Announces a text to screen readers. */
  announce(text: string): void;
}

/** Most share of the time spent on drawing, however long the last block is. */
const DRAWING_SHARE = 0.25;

/** View of one answer: its text as it comes, drawn at most once a frame, and its timing. */
export class AnswerView implements ToolListener {
  readonly element: HTMLElement;
  text = '';
  readonly #timing: AnswerTiming;
  readonly #actions: AnswerActions;
  readonly #body = el('div', { class: 'markdown' });
  readonly #markdown: MarkdownView;
  readonly #thought = el('summary');
  readonly #reasoning = el('details', { class: 'reasoning', hidden: true }, [this.#thought]);
  readonly #reasoningText = new Text();
  readonly #calls = new CallsView();
  readonly #tokens = new TokensView();
  readonly #versions = el('span');
  readonly #figures = el('span', { class: 'figures' });
  readonly #note = el('span', { class: 'answer-note' });
  readonly #problem = el('div', { class: 'problem', role: 'alert', hidden: true });
  readonly #tools = el('span', { class: 'answer-tools' });
  /** It was kept, and is no news for those who do not see it. */
  #isOld = false;
  /** True where the next text does not go on with the one before. */
  #isParted = false;
  #frame: number | null = null;
  #restUntilMs = 0;

  constructor(timing: AnswerTiming, actions: AnswerActions) {
    this.#timing = timing;
    this.#actions = actions;
    this.#markdown = new MarkdownView(this.#body, (block) => {
      if (!this.#isOld) actions.announce(block);
    });
    this.#reasoning.append(el('p', {}, [this.#reasoningText]));
    const waiting = el('span', { class: 'waiting' }, [el('i'), el('i'), el('i')]);
    this.element = el('div', { class: 'answer', 'data-state': 'waiting' }, [
      waiting,
      this.#reasoning,
      this.#calls.element,
      this.#body,
      this.#tokens.element,
      this.#problem,
      el('div', { class: 'answer-foot' }, [this.#versions, this.#figures, this.#note, this.#tools]),
    ]);
  }

  onContent(text: string): void {
    const piece = this.#isParted && this.text !== '' ? `\n\n${text}` : text;
    this.#isParted = false;
    this.text += piece;
    this.#markdown.append(piece);
    this.#draw();
  }

  /** Text of its reasoning. */
  get reasoning(): string {
    return this.#reasoningText.data;
  }

  /** What is kept of it; null: nothing has come. */
  get kept(): Pick<StoredMessage, 'text' | 'reasoning' | 'reasoningMs' | 'calls'> | null {
    const { text, reasoning } = this;
    const { calls } = this.#calls;
    if (text === '' && reasoning === '' && calls.length === 0) return null;
    const { thoughtMs } = this.#timing;
    const thought = { reasoning, ...(thoughtMs === null ? {} : { reasoningMs: Math.round(thoughtMs) }) };
    return { text, ...(reasoning === '' ? {} : thought), ...(calls.length === 0 ? {} : { calls }) };
  }

  /** Shows an answer that was kept. */
  restore({ text, reasoning = '', reasoningMs, calls = [] }: StoredMessage): void {
    this.#isOld = true;
    this.#calls.restore(calls);
    if (reasoning !== '') this.onReasoning(reasoning);
    this.#thought.textContent = thoughtWords(reasoningMs ?? null);
    if (text !== '') this.onContent(text);
    this.#close('done');
    this.#addTools(null);
  }

  onReasoning(text: string): void {
    this.#reasoning.hidden = false;
    this.#reasoningText.appendData(text);
    this.#draw();
  }

  onTokens(tokens: readonly TokenLogProb[]): void {
    this.#tokens.add(tokens);
  }

  approve(request: ApprovalRequest, signal: AbortSignal): Promise<boolean> {
    this.#actions.announce(`The model asks to call ${request.name} of ${request.server_label}.`);
    const decided = this.#calls.approve(request, signal);
    this.#actions.grew();
    return decided;
  }

  onItem(item: ResponseItem): void {
    if (item.type === 'mcp_call') this.#calls.end(item);
    // What the model writes after a call is a paragraph of its own.
    if (item.type === 'message') this.#isParted = true;
    this.#actions.grew();
  }

  /** Shows which version of the answer this is; null: there is one alone. */
  showVersions(versions: HTMLElement | null): void {
    this.#versions.replaceChildren(...(versions === null ? [] : [versions]));
  }

  end(end: ChatEnd): void {
    this.#note.textContent = endNote(end);
    this.#close('done');
    this.#addTools(end.seed);
    this.#actions.grew();
  }

  /** Shows a sentence in place of the answer, which failed. */
  fail(sentence: string): void {
    this.#close('failed');
    const again = el('button', { class: 'button', type: 'button' }, ['Try again'], {
      click: () => this.#actions.again(),
    });
    this.#problem.replaceChildren(el('span', {}, [sentence]), again);
    this.#problem.hidden = false;
    this.#actions.grew();
  }

  #close(state: 'done' | 'failed'): void {
    if (this.#frame !== null) cancelAnimationFrame(this.#frame);
    this.#frame = null;
    this.#markdown.end();
    this.element.dataset.state = state;
    this.#showFigures();
  }

  #draw(): void {
    this.element.dataset.state = 'answering';
    this.#frame ??= requestAnimationFrame((nowMs) => {
      this.#frame = null;
      if (nowMs < this.#restUntilMs) return this.#draw();
      const beganMs = performance.now();
      this.#markdown.render();
      this.#showFigures();
      this.#actions.grew();
      const tookMs = performance.now() - beganMs;
      this.#restUntilMs = beganMs + tookMs / DRAWING_SHARE;
    });
  }

  #showFigures(): void {
    const { thoughtMs, isThinking } = this.#timing;
    const isGoing = isThinking && this.element.dataset.state === 'answering';
    if (thoughtMs !== null) this.#thought.textContent = isGoing ? 'Thinking' : thoughtWords(thoughtMs);
    const { firstTokenMs, tokensPerSecond, tokens, isCounted } = this.#timing;
    if (firstTokenMs === null) return;
    const figures = [`first token ${milliseconds(firstTokenMs)}`];
    if (tokensPerSecond !== null) {
      figures.push(`${tokensPerSecond.toFixed(tokensPerSecond < 10 ? 1 : 0)} tokens/s`);
    }
    const count = `${isCounted ? '' : '\u2248\u202f'}${tokens} ${tokens === 1 ? 'token' : 'tokens'}`;
    const again = this.#timing.prompt.parting?.repeated;
    if (again !== undefined) figures.push(`${again.toLocaleString('en')} prompt tokens again`);
    this.#figures.textContent = [...figures, count].join(' \u00b7 ');
  }

  #addTools(seed: number | null): void {
    const ofSeed = seed === null ? '' : `Seed ${seed}. `;
    this.#figures.title = `${ofSeed}${promptWords(this.#timing.prompt)}`.trim();
    const copy = el('button', { class: 'button quiet', type: 'button' }, ['Copy'], {
      click: async () => {
        copy.textContent = (await copyText(this.text)) ? 'Copied' : 'Not copied';
        setTimeout(() => {
          copy.textContent = 'Copy';
        }, 1500);
      },
    });
    const again = el('button', { class: 'button quiet', type: 'button' }, ['Regenerate'], {
      click: () => this.#actions.again(),
    });
    this.#tools.append(copy, again);
  }
}

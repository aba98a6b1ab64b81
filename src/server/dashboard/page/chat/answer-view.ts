import { el } from '../dom.js';
import { type AnswerTiming, milliseconds } from './answer-timing.js';
import { copyText } from './copy-text.js';
import { MarkdownView } from './markdown-view.js';
import { promptWords } from './prompt-figures.js';
import { type ChatEnd, endNote } from './stream-chat.js';

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
export class AnswerView {
  readonly element: HTMLElement;
  text = '';
  readonly #timing: AnswerTiming;
  readonly #actions: AnswerActions;
  readonly #body = el('div', { class: 'markdown' });
  readonly #markdown: MarkdownView;
  readonly #reasoning = el('details', { class: 'reasoning', hidden: true }, [
    el('summary', {}, ['Reasoning']),
  ]);
  readonly #reasoningText = new Text();
  readonly #figures = el('span', { class: 'figures' });
  readonly #note = el('span', { class: 'answer-note' });
  readonly #problem = el('div', { class: 'problem', role: 'alert', hidden: true });
  readonly #tools = el('span', { class: 'answer-tools' });
  /** It was kept, and is no news for those who do not see it. */
  #isOld = false;
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
      this.#body,
      this.#problem,
      el('div', { class: 'answer-foot' }, [this.#figures, this.#note, this.#tools]),
    ]);
  }

  onContent(text: string): void {
    this.text += text;
    this.#markdown.append(text);
    this.#draw();
  }

  /** Text of its reasoning. */
  get reasoning(): string {
    return this.#reasoningText.data;
  }

  /** Shows an answer that was kept. */
  restore(text: string, reasoning: string): void {
    this.#isOld = true;
    if (reasoning !== '') this.onReasoning(reasoning);
    if (text !== '') this.onContent(text);
    this.#close('done');
    this.#addTools(null);
  }

  onReasoning(text: string): void {
    this.#reasoning.hidden = false;
    this.#reasoningText.appendData(text);
    this.#draw();
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

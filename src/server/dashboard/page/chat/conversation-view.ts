import { el } from '../dom.js';
import { AnswerTiming } from './answer-timing.js';
import { AnswerView } from './answer-view.js';
import type { Attachment } from './attachments/attachment.js';
import { branchSwitch } from './branch-switch.js';
import { MessageTree } from './message-tree.js';
import { QuestionView } from './question-view.js';
import type { StoredMessage } from './stored-conversation.js';

/** Distance from the end, in pixels, within which the reader is taken to read along. */
const NEAR_END = 60;

/** A question and its answer on the page. */
export interface Turn {
  question: StoredMessage;
  questionView: QuestionView;
  /** null: there is none yet, or it failed. */
  answer: StoredMessage | null;
  answerView: AnswerView;
  element: HTMLElement;
}

export interface ConversationActions {
  /** Asks a question after a message; null: as the first. */
  ask(text: string, attachments: readonly Attachment[], parent: string | null): void;
  /** Asks for another answer of a turn. */
  again(turn: Turn): void;
  /** Shows the branch of another version of a message. */
  choose(message: string): void;
  open(attachment: Attachment): void;
  announce(text: string): void;
}

/** The branch of a conversation that is on the page, turn by turn. */
export class ConversationView {
  readonly element = el('div', {
    class: 'chat-log',
    tabindex: '0',
    role: 'region',
    'aria-label': 'Conversation',
  });
  readonly #actions: ConversationActions;
  /** Formulas and pictures may come after the text that they are in. */
  readonly #resized = new ResizeObserver(() => this.follow());
  #tree = new MessageTree();
  #turns: Turn[] = [];
  #readsAlong = true;

  constructor(actions: ConversationActions) {
    this.#actions = actions;
    this.element.addEventListener('scroll', () => {
      const { scrollHeight, scrollTop, clientHeight } = this.element;
      this.#readsAlong = scrollHeight - scrollTop - clientHeight < NEAR_END;
    });
  }

  get tree(): MessageTree {
    return this.#tree;
  }

  get turns(): readonly Turn[] {
    return this.#turns;
  }

  /** The last message that is kept; null: there is none. */
  get leaf(): string | null {
    const last = this.#turns.at(-1);
    return last === undefined ? null : (last.answer ?? last.question).id;
  }

  /** The last answer: what is asked next comes after it. */
  get lastAnswer(): string | null {
    return this.#turns.findLast(({ answer }) => answer !== null)?.answer?.id ?? null;
  }

  /** Shows something else in place of a conversation. */
  clear(shown: Node): void {
    this.#forget(0);
    this.#tree = new MessageTree();
    this.element.replaceChildren(shown);
  }

  /** Shows another conversation. */
  begin(tree: MessageTree, leaf: string): void {
    this.clear(new Text());
    this.#tree = tree;
    this.show(leaf);
  }

  /** Shows the branch that ends with a message. What it has in common with the one on the page stays. */
  show(leaf: string): void {
    const path = this.#tree.path(leaf);
    const questions = path.filter(({ role }) => role === 'user');
    const answers = new Map(path.filter(({ role }) => role !== 'user').map((one) => [one.parent, one]));
    const isShown = ({ question, answer }: Turn, index: number) =>
      questions[index]?.id === question.id && answers.get(question.id)?.id === answer?.id;
    const parts = this.#turns.findIndex((turn, index) => !isShown(turn, index));
    const common = parts < 0 ? this.#turns.length : parts;
    this.#forget(common);
    for (const question of questions.slice(common)) {
      const turn = this.addTurn(question, new AnswerTiming(performance.now()));
      turn.answer = answers.get(question.id) ?? null;
      if (turn.answer === null) turn.answerView.fail('There is no answer yet.');
      else turn.answerView.restore(turn.answer);
    }
    this.showVersions();
    this.readAlong();
  }

  /** Puts a question, which is in the tree, after the last answer that is shown. */
  addTurn(question: StoredMessage, timing: AnswerTiming): Turn {
    const { ask, open } = this.#actions;
    if (this.#turns.length === 0) this.element.replaceChildren();
    const { text, attachments = [], parent } = question;
    const questionView = new QuestionView(text, attachments, {
      resend: (changed) => ask(changed, attachments, parent),
      open,
    });
    const element = el('div', { class: 'turn' }, [questionView.element]);
    const answerView = this.#answerView(timing, () => this.#actions.again(turn));
    const turn: Turn = { question, questionView, answer: null, answerView, element };
    element.append(answerView.element);
    this.#turns.push(turn);
    this.element.append(element);
    this.#resized.observe(element);
    return turn;
  }

  /** Makes room for another answer of a turn; the turns after it leave the page. */
  renew(turn: Turn, timing: AnswerTiming): void {
    this.#forget(this.#turns.indexOf(turn) + 1);
    const view = this.#answerView(timing, () => this.#actions.again(turn));
    turn.answerView.element.replaceWith(view.element);
    turn.answerView = view;
    turn.answer = null;
  }

  /** Drops the turns after a message from the page; null: all. */
  cut(parent: string | null): void {
    this.#forget(parent === null ? 0 : this.#turns.findIndex(({ answer }) => answer?.id === parent) + 1);
  }

  #answerView(timing: AnswerTiming, again: () => void): AnswerView {
    return new AnswerView(timing, { again, grew: () => this.follow(), announce: this.#actions.announce });
  }

  #forget(from: number): void {
    for (const { element } of this.#turns.splice(from)) {
      this.#resized.unobserve(element);
      element.remove();
    }
  }

  /** Shows which of the versions of each message is on the page. */
  showVersions(): void {
    for (const [at, { question, questionView, answer, answerView }] of this.#turns.entries()) {
      questionView.showVersions(this.#switch('question', at, question));
      answerView.showVersions(answer && this.#switch('answer', at, answer));
    }
  }

  #switch(of: 'question' | 'answer', at: number, { id }: StoredMessage): HTMLElement | null {
    return branchSwitch(of, this.#tree.versions(id), id, (chosen, isLater) => {
      this.#actions.choose(chosen);
      // The focus stays where it was: in the switch, which has been made again.
      const buttons = [
        ...this.#turns[at]!.element.querySelectorAll<HTMLButtonElement>(`.branches[data-of="${of}"] button`),
      ];
      const [usual, other] = isLater ? buttons.reverse() : buttons;
      (usual?.disabled ? other : usual)?.focus();
    });
  }

  readAlong(): void {
    this.#readsAlong = true;
    this.follow();
  }

  follow(): void {
    if (this.#readsAlong) this.element.scrollTop = this.element.scrollHeight;
  }
}

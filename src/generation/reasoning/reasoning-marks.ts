/** Marks around reasoning. They may be special tokens of the vocabulary, or texts. */
export interface ReasoningMarks {
  readonly begin: string;
  readonly end: string;
  /** Text after the first mark that belongs to it, and the white space after both. */
  readonly label: string;
  readonly gap: string;
}

export const CHANNEL_BEGIN = '<|channel>';
export const CHANNEL_END = '<channel|>';
/** The channel of reasoning. */
export const THOUGHT = 'thought';

/** Marks of most models: `<think>\nHm.\n</think>`. */
export const THINK_MARKS: ReasoningMarks = { begin: '<think>', end: '</think>', label: '', gap: '\n' };
/** Marks of Gemma 4: `<|channel>thought\nHm.\n<channel|>`. */
export const CHANNEL_MARKS: ReasoningMarks = {
  ...{ begin: CHANNEL_BEGIN, end: CHANNEL_END },
  ...{ label: THOUGHT, gap: '\n' },
};

/** The marks of a template that writes reasoning, or removes it from earlier answers; null: it has none. */
export function marksIn(source: string | null | undefined): ReasoningMarks | null {
  if (source == null) return null;
  if (source.includes(THINK_MARKS.end)) return THINK_MARKS;
  return source.includes(CHANNEL_BEGIN) && source.includes(CHANNEL_END) ? CHANNEL_MARKS : null;
}

/**
 * Beginning of an answer:
 *
 *   open     with reasoning: the prompt opened it, or the model always thinks
 *   inside   with more of the reasoning that the prompt ends with
 *   maybe    with reasoning if it opens it
 */
export type ReasoningStart = 'open' | 'inside' | 'maybe';

/** Reasoning of an answer. */
export interface AnswerReasoning {
  start: ReasoningStart;
  marks: ReasoningMarks;
}

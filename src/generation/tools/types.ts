/** A function that the model may call, as a client describes it. */
export interface FunctionTool {
  name: string;
  description?: string | undefined;
  /** JSON schema of its arguments, an object's; absent: it takes none. */
  parameters?: Readonly<Record<string, unknown>> | undefined;
  /** The function's arguments follow the schema even where the model chooses whether to call it. */
  strict?: boolean | undefined;
}

/**
 * Whether functions are called.
 *
 *   none       never
 *   auto       as the model likes
 *   required   at least one
 *   named      exactly one, and this one
 */
export type ToolChoice = { mode: 'none' | 'auto' | 'required' } | { mode: 'named'; name: string };

/** Formats in which models write calls. */
export const TOOL_FORMAT_NAMES = [
  'hermes',
  'llama3_json',
  'pythonic',
  'mistral',
  'qwen3_coder',
  'deepseek_v3',
] as const;
export type ToolFormatName = (typeof TOOL_FORMAT_NAMES)[number];

/**
 * A part of an answer, in its order. `arguments` parts belong to the call before them; joined they are its arguments as JSON,
 * unless the model wrote something else.
 */
export type AnswerPart =
  | { type: 'content'; text: string }
  | { type: 'reasoning'; text: string }
  | { type: 'call'; name: string }
  | { type: 'arguments'; text: string };

/**
 * Takes an answer apart as it comes. What it says does not depend on how the text is cut: it looks at one character after
 * the other, and holds back what could still become something else.
 */
export interface AnswerParser {
  push(text: string): AnswerPart[];
  /** The end of the text: what was held back. */
  end(): AnswerPart[];
}

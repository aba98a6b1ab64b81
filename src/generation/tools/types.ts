import type { TOOL_FORMAT_NAMES } from '../../options/server/requests.js';

/** A function that the model may call, as a client describes it. */
export interface FunctionTool {
  name: string;
  description?: string | undefined;
  /** JSON schema of the function's arguments, an object's; absent: it takes none. */
  parameters?: Readonly<Record<string, unknown>> | undefined;
  /** Makes the function's arguments follow the schema even where the model chooses whether to call it. */
  strict?: boolean | undefined;
}

/**
 * Choice whether functions are called:
 *
 *   none       never
 *   auto       as the model likes
 *   required   at least one
 *   named      exactly one, and this one
 */
export type ToolChoice = { mode: 'none' | 'auto' | 'required' } | { mode: 'named'; name: string };

export type ToolFormatName = (typeof TOOL_FORMAT_NAMES)[number];
/** Formats of calls within a text, which reasoning precedes. */
export type TextFormatName = Exclude<ToolFormatName, 'harmony'>;

/**
 * A part of an answer, in order. `arguments` parts belong to the call before them; joined they are its
 * arguments as JSON, unless the model wrote something else. Content that is made comes from another place in
 * the answer, or from none: it is not searched for stop strings.
 */
export type AnswerPart =
  | { type: 'content'; text: string; isMade?: true }
  | { type: 'reasoning'; text: string }
  | { type: 'call'; name: string }
  | { type: 'arguments'; text: string };

/**
 * Takes an answer apart as it comes. The result does not depend on how the text is cut: characters are read one by one,
 * and text that may still change its role is held back.
 */
export interface AnswerParser {
  push(text: string): AnswerPart[];
  /** Number of UTF-16 units at the end of the text so far that may yet become content. */
  readonly held: number;
  /** How often text between content has been left out that is no part by itself. Absent: never. */
  readonly breaks?: number;
  /** Ends the text and returns the parts held back. */
  end(): AnswerPart[];
}

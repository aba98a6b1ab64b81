import type { ErrorRecord } from '../base/error-record.js';
import type { NamedText } from '../base/named-text.js';
import { SkeinError } from '../base/skein-error.js';

export interface ChatTextPart {
  type: string;
  text?: string | undefined;
  /** Of a part of type image_url: a data: URL with a picture. */
  image_url?: string | { url: string } | undefined;
  /** Of a program's part of type image: a picture's file, or its path. */
  image?: Uint8Array | Blob | string | undefined;
}

/** A message in the OpenAI API's form; further fields reach the template unchanged. */
export interface ChatMessage {
  role: string;
  content?: string | readonly ChatTextPart[] | null;
  tool_calls?: readonly unknown[];
  [field: string]: unknown;
}

/**
 * How a template refuses messages:
 *
 *   rule        by raise_exception
 *   operation   something in it fails on their values, such as a text that is added to a list
 */
export type TemplateRefusal = 'rule' | 'operation';

/**
 * An error for messages that cannot be rendered: the template refuses them, or there is no template. The request is at
 * fault.
 */
export class ChatTemplateError extends SkeinError {
  override name = 'ChatTemplateError';
  override readonly code = 'SKEIN_CHAT_TEMPLATE';
  /** How the template refused the messages; null: it did not, it took too much work, or an option was wrong. */
  readonly refusal: TemplateRefusal | null;

  constructor(text: NamedText, options: ErrorOptions & { refusal?: TemplateRefusal | null } = {}) {
    super(text, options);
    this.refusal = options.refusal ?? null;
  }

  /** The error that a thread threw. */
  static of({ text, held }: Pick<ErrorRecord, 'text' | 'held'>): ChatTemplateError {
    return new ChatTemplateError(text, { refusal: held.refusal as TemplateRefusal | null });
  }
}

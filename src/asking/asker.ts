import { SkeinError } from '../../base/skein-error.js';

/** A model that can be asked through the OpenAI API, in this process or on a server. */
export interface Asker {
  /** The name that requests ask for. */
  model: string;
  /** Where it runs, and how, in a line. */
  about: string;
  /** Tokens of the longest sequence; null where the server does not say. */
  maxSeqLen: number | null;
  /** Milliseconds that loading took; null where it runs elsewhere. */
  loadMs: number | null;
  /** Posts a body as JSON. @throws AskingError where there is no answer at all. */
  post(path: string, body: object, signal: AbortSignal): Promise<Response>;
  close(): Promise<void>;
}

/** A question that was refused, or an answer that broke off, in a sentence. */
export class AskingError extends SkeinError {
  override name = 'AskingError';
  override readonly code = 'SKEIN_ASKING';
  /** The server's code for it, one of OpenAI's, where there is one. */
  readonly apiCode: string | null;

  constructor(message: string, apiCode: string | null = null) {
    super(message);
    this.apiCode = apiCode;
  }
}

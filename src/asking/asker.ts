import { SkeinError } from '../../base/skein-error.js';

/** A model that can be asked through the OpenAI API, in this process or on a server. */
export interface Asker {
  /** Name of the model in requests. */
  model: string;
  /** Description of where and how the model runs, in a line. */
  about: string;
  /** Names of all models that can be asked in the same way; this one alone where a model is loaded here. */
  models: readonly string[];
  /** Number of tokens of the longest sequence; null where the server does not say. */
  maxSeqLen: number | null;
  /** Milliseconds that loading took; null where the model runs elsewhere. */
  loadMs: number | null;
  /** Posts a body as JSON. @throws AskingError where no answer comes. */
  post(path: string, body: object, signal: AbortSignal): Promise<Response>;
  close(): Promise<void>;
}

/** An error for a question that was refused, or an answer that broke off. */
export class AskingError extends SkeinError {
  override name = 'AskingError';
  override readonly code = 'SKEIN_ASKING';
  /** The server's code for the error, one of OpenAI's; null where it gives none. */
  readonly apiCode: string | null;

  constructor(message: string, apiCode: string | null = null) {
    super(message);
    this.apiCode = apiCode;
  }
}

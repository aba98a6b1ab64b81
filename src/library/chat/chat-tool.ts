import type { OutputOf, StandardSchema } from '../../generation/standard-schema.js';

/** What a function receives besides its arguments. */
export interface CallContext {
  /** Id of the call. */
  id: string;
  /** Is aborted when the turn is. */
  signal: AbortSignal;
}

/** A function that a model may call in a chat. Written with `tool()`, its arguments have the type of its schema. */
export interface ChatTool<Args = never> {
  /** What it does, for the model. */
  description?: string | undefined;
  /** Schema of its arguments, an object's: zod's or another Standard Schema. They are validated before the function runs. */
  input?: StandardSchema | undefined;
  /**
   * JSON schema of its arguments, in place of `input`, or for the model in addition to an `input` that makes
   * no JSON schema.
   */
  parameters?: Readonly<Record<string, unknown>> | undefined;
  /** Makes the model follow the schema wherever it calls the function. Default false. */
  strict?: boolean | undefined;
  /**
   * What it returns reaches the model: a text as it is, anything else as JSON. What it throws reaches the model as an error. Absent: the
   * turn ends with the call, and the program sends its result.
   */
  execute?: ((args: Args, context: CallContext) => unknown) | undefined;
}

type Described<Args> = Omit<ChatTool<Args>, 'input'>;

/** A function for a chat, whose arguments have the type of its schema. */
export function tool<Schema extends StandardSchema>(
  given: Described<OutputOf<Schema>> & { input: Schema },
): ChatTool<OutputOf<Schema>>;
export function tool(given: Described<Record<string, unknown>>): ChatTool<Record<string, unknown>>;
export function tool<Args>(given: ChatTool<Args>): ChatTool<Args> {
  return given;
}

import * as z from 'zod';

/** Address of the server for a client, and the model that it asks. */
export interface Place {
  url: string;
  model: string;
}

export interface Answer {
  text: string;
  /** In the client's own words. */
  finish: string | null | undefined;
  inputTokens: number | undefined;
  outputTokens: number | undefined;
}

export interface Call {
  name: string;
  args: unknown;
}

export interface Refusal {
  status: number | undefined;
  message: string;
}

export interface LogProb {
  token: string;
  logprob: number;
  top_logprobs: readonly { token: string; logprob: number }[];
}

/** A question to the model. The temperature is 0 unless given. */
export interface Ask {
  prompt: string;
  maxTokens: number;
  temperature?: number;
}

/**
 * A client library of OpenAI's routes, beyond what its page in docs/clients shows, with each operation written as its users would write it:
 *
 *                     openai npm   openai pip   AI SDK   LangChain   curl
 *   non-stream            x            x           x         x         x
 *   stream                x            x           x         x         x
 *   usage                 x            x           x         x         x
 *   tools                 x            x           x         x         x
 *   structured output     x            x           x         x         x
 *   logprobs              x            x           -         x         x
 *   abort                 x            x           x         x         x
 *   errors                x            x           x         x         x
 *   retries               x            x           x         x         x
 *
 * The AI SDK's openai-compatible provider has no log-probs: it neither asks for them nor gives them.
 */
export interface Client {
  name: string;
  whole(place: Place, ask: Ask): Promise<Answer>;
  /** With the usage, which a stream has to be asked for; joined from what came piece by piece. */
  streamed(place: Place, ask: Ask): Promise<Answer & { pieces: number }>;
  /** Calls of WEATHER, which it has to call. */
  calls(place: Place, ask: Ask, how: 'whole' | 'streamed'): Promise<Call[]>;
  /** An answer of the form of PERSON, as the client reads it. */
  person(place: Place, ask: Ask): Promise<unknown>;
  /** null: the client has none. */
  logProbs: ((place: Place, ask: Ask) => Promise<readonly LogProb[]>) | null;
  /** Asks for a stream and leaves it after its first pieces. */
  leave(place: Place, ask: Ask): Promise<void>;
  refused(place: Place, ask: Ask): Promise<Refusal>;
  /** Asks as often as it takes. */
  persistent(place: Place, ask: Ask): Promise<string>;
}

export const PERSON = z.object({ name: z.string().max(20), age: z.number().int().min(0).max(150) });

export const WEATHER = {
  name: 'get_weather',
  description: 'The weather of a city.',
  input: z.object({ city: z.enum(['Paris', 'Rome']), days: z.number().int().min(1).max(9) }),
};

/** PERSON as a JSON schema, for clients that have no schemas of their own. */
export const PERSON_SCHEMA = jsonSchema(PERSON);
export const WEATHER_TOOL = {
  type: 'function' as const,
  function: {
    name: WEATHER.name,
    description: WEATHER.description,
    parameters: jsonSchema(WEATHER.input),
  },
};

function jsonSchema(schema: z.ZodType): Record<string, unknown> {
  const { $schema: _, ...rest } = z.toJSONSchema(schema);
  return rest as Record<string, unknown>;
}

import { type Asker, AskingError } from './asker.js';
import { refusalOf } from './refusal.js';
import { connectionProblem } from './server-address.js';

/** Milliseconds in which a server must say what it serves; after that it counts as dead. */
const CONNECT_LIMIT_MS = 10_000;

export interface RemoteAskerOptions {
  /** The server's address, as serverAddress gives it. */
  address: string;
  apiKey: string | undefined;
  /** Name of the model; default: the first that the server names. */
  model: string | undefined;
}

/** Connects to any server with the OpenAI API. @throws AskingError. */
export async function connectAsker(
  { address, apiKey, model }: RemoteAskerOptions,
  signal: AbortSignal,
): Promise<Asker> {
  const headers: Record<string, string> = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
  const limit = AbortSignal.any([signal, AbortSignal.timeout(CONNECT_LIMIT_MS)]);
  const response = await reach(address, `${address}/v1/models`, { headers, signal: limit }, signal);
  if (!response.ok) throw await refusalOf(response, address);
  const models = await modelsOf(response);
  if (models === null || models.length === 0) {
    throw new AskingError(`${address} names no models at /v1/models; it is no server with the OpenAI API.`);
  }
  const chosen = model === undefined ? models[0]! : (models.find(({ id }) => id === model) ?? { id: model });
  return {
    model: chosen.id,
    models: models.map(({ id }) => id),
    about: `${chosen.id} at ${address}`,
    maxSeqLen: chosen.max_model_len ?? null,
    loadMs: null,
    post: (path, body, abort) =>
      reach(
        address,
        `${address}${path}`,
        {
          method: 'POST',
          headers: { ...headers, 'content-type': 'application/json' },
          body: JSON.stringify(body),
          signal: abort,
        },
        abort,
      ),
    close: async () => {},
  };
}

async function reach(
  address: string,
  url: string,
  request: RequestInit,
  signal: AbortSignal,
): Promise<Response> {
  try {
    return await fetch(url, request);
  } catch (error) {
    signal.throwIfAborted();
    throw new AskingError(`${address} cannot be reached: ${connectionProblem(error)}`);
  }
}

async function modelsOf(response: Response): Promise<{ id: string; max_model_len?: number }[] | null> {
  const body = (await response.json().catch(() => null)) as { data?: unknown } | null;
  if (!Array.isArray(body?.data)) return null;
  return body.data.filter((entry: unknown) => typeof (entry as { id?: unknown } | null)?.id === 'string');
}

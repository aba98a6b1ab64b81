import { problemOf } from './problem.js';
import type { Session } from './session.js';

/** A model of GET /v1/models that generates text. */
export interface ChatModel {
  id: string;
  /** When it was loaded, in seconds since 1970 on the server's clock. */
  created: number;
  /** Tokens of prompt and answer together at most. */
  max_model_len: number;
}

/** @throws Error with a sentence for the reader. */
export async function loadModels(session: Session): Promise<ChatModel[]> {
  const response = await session.fetch('v1/models');
  if (!response.ok) throw new Error(await problemOf(response));
  const { data } = (await response.json()) as { data: ChatModel[] };
  // Encoders have no statistics of a batch manager.
  const generates = await Promise.all(
    data.map(async ({ id }) => (await session.fetch(`stats?model=${encodeURIComponent(id)}`)).ok),
  );
  return data.filter((_, index) => generates[index]);
}

import { SkeinError } from '../../../../base/skein-error.js';
import { problemOf } from './problem.js';
import type { Session } from './session.js';

/** A model of GET /v1/models that generates text. */
export interface ChatModel {
  id: string;
  /** Time of loading, in seconds since 1970 on the server's clock. */
  created: number;
  /** Most tokens of prompt and answer together. */
  max_model_len: number;
  /** What messages may have: `text`, and `image` where it sees; absent: a server that does not say. */
  input_modalities?: readonly string[];
  /** Settings of answers that have none of their own, as the model's makers recommend them. */
  sampling_defaults?: Readonly<Record<string, number>>;
  /** Of a LoRA adapter its base model; else null. */
  parent: string | null;
}

/** An error for a server whose models cannot be listed; the message is for the reader. */
export class ModelsProblem extends SkeinError {
  override name = 'ModelsProblem';
  override readonly code = 'SKEIN_PAGE_MODELS';
  readonly isLocked: boolean;

  constructor(message: string, isLocked: boolean) {
    super(message);
    this.isLocked = isLocked;
  }
}

/** Lists the models that generate text. @throws ModelsProblem */
export async function loadModels(session: Session): Promise<ChatModel[]> {
  const response = await session.fetch('v1/models').catch(() => {
    throw new ModelsProblem('The server cannot be reached.', false);
  });
  if (!response.ok) throw new ModelsProblem(await problemOf(response), response.status === 401);
  const { data } = (await response.json()) as { data: ChatModel[] };
  // Only models that generate text have statistics of a batch manager; encoders have none.
  const generates = new Set<string>();
  await Promise.all(
    data.map(async ({ id, parent }) => {
      if (parent !== null) return;
      const answer = await session.fetch(`stats?model=${encodeURIComponent(id)}`).catch(() => null);
      if (answer?.ok) generates.add(id);
    }),
  );
  return data.filter(({ id, parent }) => generates.has(parent ?? id));
}

import type { AnswerRun } from '../../answering/respond.js';
import { toApiError } from '../../web/errors.js';
import type { RequestMemory } from '../../web/memory/request-memory.js';
import type { HeldTask } from './held-task.js';
import type { ResponseMaking } from './response-making.js';

export interface BackgroundRun {
  run: AnswerRun;
  making: ResponseMaking;
  /** Account of its own, since the one of the request is closed with its answer. It is closed when the response is made, and its events read. */
  memory: RequestMemory;
  logError: (error: unknown) => void;
  /** Where other servers may continue it; null: it is this server's alone. */
  held: HeldTask | null;
}

/** Makes a response to its end, even without a reader; a failed one can be read too. */
export async function makeInBackground({
  run,
  making,
  memory,
  logError,
  held,
}: BackgroundRun): Promise<void> {
  const { events } = making;
  const writer = making.frameWriter();
  try {
    await run.consume((choice, piece) => {
      const frames = writer.piece(choice, piece);
      events?.append(frames);
    }, events === null);
    for await (const frame of writer.end()) events?.append(frame);
  } catch (error) {
    const apiError = toApiError(error);
    if (apiError.status === 500) logError(error);
    const frames = writer.error(apiError);
    events?.append(frames);
  } finally {
    events?.end();
    const keep = () => making.keep();
    await (held === null ? keep() : held.finish(keep, () => making.unkeep())).catch(logError);
    const release = () => memory.release();
    if (events === null) release();
    else events.whenUnread(release);
  }
}

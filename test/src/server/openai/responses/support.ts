import { createParser } from 'eventsource-parser';
import type { KeptLimits } from '../../../../../src/server/openai/responses/kept-values.js';
import { MemoryPlace } from '../../../../../src/server/openai/responses/memory-place.js';
import {
  DEFAULT_STORE_LIMITS,
  ResponseStore,
} from '../../../../../src/server/openai/responses/response-store.js';
import type { MemoryHold } from '../../../../../src/server/web/memory/held-memory.js';
import type { ToyServer } from '../../../support/toy-server.js';

export const PATH = '/v1/responses';

/** A store in memory. @param hold memory account of what is stored */
export function storeOf(limits: Partial<KeptLimits> = {}, hold: MemoryHold | null = null) {
  const all = { ...DEFAULT_STORE_LIMITS, ...limits };
  const place = new MemoryPlace(all, hold);
  return { place, store: new ResponseStore(place, all.maxBytes) };
}

/** An answer as tests read it. */
// biome-ignore lint/suspicious/noExplicitAny: its shape is what is tested.
export type Any = any;

export async function create(toy: ToyServer, body: object): Promise<Any> {
  const response = await toy.post(PATH, body);
  const json = await response.json();
  if (response.status !== 200) throw new Error(`${response.status} ${JSON.stringify(json)}`);
  return json;
}

/** The events of a stream. Each has its type as its name, and its number. */
export async function readEvents(response: Response): Promise<Any[]> {
  const events: Any[] = [];
  const parser = createParser({
    onEvent: ({ event, data }) => {
      const json = JSON.parse(data) as { type: string; sequence_number: number };
      if (json.type !== event || json.sequence_number !== events.length) {
        throw new Error(`Event ${events.length} is named ${event}, and says ${data}`);
      }
      events.push(json);
    },
  });
  parser.feed(await response.text());
  return events;
}

/** Prompt that the engine was given, as text. */
export function promptText(toy: ToyServer, index = -1): string {
  const bytes = Array.from(toy.engine.requests.at(index)!.promptTokens).filter((token) => token < 256);
  return Buffer.from(bytes).toString();
}

export async function refusal(toy: ToyServer, body: object): Promise<Any> {
  const response = await toy.post(PATH, body);
  const { error } = (await response.json()) as Any;
  return { status: response.status, ...error };
}

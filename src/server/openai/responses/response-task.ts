import { createHash } from 'node:crypto';
import { StoreError } from '../../../../base/store-errors.js';
import type { EventSplicer } from './event-splicer.js';
import type { ResponseObject } from './response-object.js';
import type { KeptItem, StoredItem } from './response-store.js';

/** A response that is made in the background, as all servers know it. */
export interface ResponseTask {
  owner: string;
  /** Id of the server that makes it. */
  holder: string;
  /** The response as it was begun. */
  response: ResponseObject;
  isCancelled: boolean;
  /** It is not kept. */
  isDiscarded: boolean;
}

/** What it is made of: does not change. */
export interface TaskInput {
  /** The body of the request as it came, with a seed. */
  json: { stream?: unknown };
  input: readonly StoredItem[];
  /** Items of the responses that it continues. */
  history: readonly KeptItem[];
  /** Items of its stored conversation, and its turn there; null: it belongs to none. */
  conversation: { id: string; turnId: string; before: readonly KeptItem[] } | null;
}

/** From where a response is made that another server may continue. */
export interface Origin {
  id: string;
  /** Seconds since 1970; absent: now. */
  createdAt?: number;
  /** What was sent of it before; null: nothing. */
  splicer: EventSplicer | null;
}

/** The task of a record. @throws StoreError for an invalid record */
export function readTask(id: string, text: string): ResponseTask {
  return read(id, text, (task: ResponseTask) => {
    const { owner, holder, response, isCancelled, isDiscarded } = task;
    if (typeof owner !== 'string' || typeof holder !== 'string' || response.id !== id)
      throw new Error('it has no owner, no holder or another id');
    return { owner, holder, response, isCancelled: isCancelled === true, isDiscarded: isDiscarded === true };
  });
}

/** @throws StoreError for an invalid record */
export function readTaskInput(id: string, text: string): TaskInput {
  return read(id, text, ({ json, input, history, conversation }: TaskInput) => {
    for (const items of [input, history, conversation?.before ?? []])
      for (const item of items)
        if (typeof item.id !== 'string') throw new Error('it has an item that is none');
    if (typeof json !== 'object' || json === null) throw new Error('it has no request');
    return { json, input, history, conversation };
  });
}

function read<From, To>(id: string, text: string, check: (value: From) => To): To {
  try {
    return check(JSON.parse(text) as From);
  } catch (error) {
    throw new StoreError('foreign', `The record of ${id} cannot be read: ${(error as Error).message}.`);
  }
}

/**
 * Makes ids of a response's parts that are the same wherever it is made: clients with its id may read it, and
 * the part ids do not reveal it.
 */
export function idsOf(responseId: string): () => string {
  let count = 0;
  return () => createHash('sha256').update(`${responseId} ${count++}`).digest('hex').slice(0, 48);
}

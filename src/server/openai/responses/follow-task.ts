import { setTimeout as delay } from 'node:timers/promises';
import { StoreError } from '../../../../base/store-errors.js';
import type { EventLog } from './event-log.js';

/** Milliseconds between two looks for more events. */
const POLL_MS = 200;

/** What is known of a response that another server makes. */
export interface FollowedTask {
  /** Text of the events that are stored, from a number of bytes on. */
  more(bytes: number): Promise<string>;
  isUnderWay(): Promise<boolean>;
  /** All events, once the response is kept; null: it is not. */
  kept(): Promise<readonly string[] | null>;
  /** Counts what is to be sent. @throws ApiError where there is no room */
  onMore(text: string): void;
}

/** Fills a log with the events of a response that another server makes, until it has ended or nobody reads them. Never rejects. */
export async function followTask(log: EventLog, task: FollowedTask): Promise<void> {
  let bytes = 0;
  const add = (text: string) => {
    if (text === '') return;
    task.onMore(text);
    bytes += Buffer.byteLength(text);
    log.append(text);
  };
  let isFirst = true;
  try {
    while (isFirst || log.isRead) {
      isFirst = false;
      try {
        const isUnderWay = await task.isUnderWay();
        if (isUnderWay) add(await task.more(bytes));
        else {
          add((await task.kept())?.slice(log.frames.length).join('') ?? '');
          break;
        }
      } catch (error) {
        if (!(error instanceof StoreError) || error.kind !== 'away') throw error;
      }
      await delay(POLL_MS);
    }
  } catch {
    // Its reader has what came so far, and may ask for the rest.
  }
  log.end();
}

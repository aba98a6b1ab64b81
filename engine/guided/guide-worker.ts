import { type MessagePort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import type { GuideThreadSetup } from '../../callbacks/worker-messages.js';
import { GuideFollower } from './guide-follower.js';
import {
  BUSY_WITH,
  type GuideRequest,
  REPLY_BELL,
  REQUEST_BELL,
  type ReadingReply,
} from './guide-messages.js';
import { TokenTrie } from './token-trie.js';
import { vocabularyBytes } from './vocabulary.js';

export interface GuideWorkerData extends GuideThreadSetup {
  /** The port to the thread that reads guides. */
  reader: MessagePort;
}

await main(workerData as GuideWorkerData);

/** Answers the loop until it is ended from outside; sleeps at the bell while there are no requests. */
async function main({
  port,
  reader,
  control: shared,
  enginePath,
  vocabSize,
}: GuideWorkerData): Promise<void> {
  const control = new Int32Array(shared);
  const trie = new TokenTrie(await vocabularyBytes(enginePath, vocabSize));
  const follower = new GuideFollower(
    trie,
    (reply) => {
      port.postMessage(reply);
      Atomics.add(control, REPLY_BELL, 1);
      Atomics.notify(control, REPLY_BELL);
    },
    (request) => reader.postMessage(request),
    (first) => Atomics.store(control, BUSY_WITH, first + 1),
  );
  for (;;) {
    const bell = Atomics.load(control, REQUEST_BELL);
    for (const read of received<ReadingReply>(reader)) follower.take(read);
    for (const request of received<GuideRequest>(port)) follower.handle(request);
    if (follower.hasWork) follower.work();
    else Atomics.wait(control, REQUEST_BELL, bell);
  }
}

function* received<Message>(port: MessagePort): Generator<Message> {
  for (let next = receiveMessageOnPort(port); next !== undefined; next = receiveMessageOnPort(port)) {
    yield next.message as Message;
  }
}

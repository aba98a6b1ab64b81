import { receiveMessageOnPort, workerData } from 'node:worker_threads';
import { GuideFollower } from './guide-follower.js';
import { type GuideRequest, type GuideThreadSetup, REPLY_BELL, REQUEST_BELL } from './guide-messages.js';
import { TokenTrie } from './token-trie.js';
import { vocabularyBytes } from './vocabulary.js';

await main(workerData as GuideThreadSetup);

/** Answers the loop until it is ended from outside: asleep at the bell while nothing is asked. */
async function main({ port, control: shared, enginePath, vocabSize }: GuideThreadSetup): Promise<void> {
  const control = new Int32Array(shared);
  const follower = new GuideFollower(new TokenTrie(await vocabularyBytes(enginePath, vocabSize)));
  for (;;) {
    const bell = Atomics.load(control, REQUEST_BELL);
    for (let next = receiveMessageOnPort(port); next !== undefined; next = receiveMessageOnPort(port)) {
      follower.handle(next.message as GuideRequest, (reply) => {
        port.postMessage(reply);
        Atomics.add(control, REPLY_BELL, 1);
        Atomics.notify(control, REPLY_BELL);
      });
    }
    Atomics.wait(control, REQUEST_BELL, bell);
  }
}

import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import { Heartbeat } from '../../callbacks/heartbeat.js';
import type { ItemsAnswer, ItemsCommand } from '../../callbacks/items-messages.js';
import type { WorkerWires } from '../../callbacks/worker-data.js';
import { Doorbell, type WorkerLife } from '../../callbacks/worker-messages.js';

/** What a worker of batches has loaded. */
interface LoadedItems<Item, Info> {
  info: Info;
  compute(items: readonly Item[]): ItemsAnswer;
  close(): void;
}

/** Answers batches until it is sent the command to end; sleeps at the doorbell while there are none. */
export function answerBatches<Item, Info>(
  { port, ...wires }: WorkerWires,
  { info, compute, close }: LoadedItems<Item, Info>,
): void {
  tell(port, { type: 'ready', info });
  const doorbell = new Doorbell(wires.doorbell);
  const heartbeat = new Heartbeat(wires.heartbeat);
  for (;;) {
    heartbeat.beat();
    const bell = doorbell.read();
    const command = receiveMessageOnPort(port)?.message as ItemsCommand<Item> | undefined;
    if (command === undefined) {
      heartbeat.sleep();
      doorbell.wait(bell, Number.POSITIVE_INFINITY);
      continue;
    }
    if (command.type === 'shutdown') break;
    const answer = compute(command.items);
    port.postMessage(
      answer,
      answer.rows.map(({ buffer }) => buffer),
    );
  }
  close();
  tell(port, { type: 'closed' });
  port.close();
}

function tell<Info>(port: MessagePort, message: WorkerLife<Info>): void {
  port.postMessage(message);
}

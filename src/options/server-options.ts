import { ACCESS_OPTIONS } from './server/access.js';
import { LOADING_OPTIONS } from './server/loading.js';
import { MODEL_OPTIONS } from './server/models.js';
import { QUEUE_OPTIONS } from './server/queue.js';
import { REQUEST_OPTIONS } from './server/requests.js';
import { RUNNING_OPTIONS } from './server/running.js';

/** The server's part of the table of options, in the order of the help; the engine's is in callbacks/options/. */
export const SERVER_OPTIONS = {
  ...MODEL_OPTIONS,
  ...ACCESS_OPTIONS,
  ...REQUEST_OPTIONS,
  ...QUEUE_OPTIONS,
  ...RUNNING_OPTIONS,
  ...LOADING_OPTIONS,
};

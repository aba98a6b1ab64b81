import type { ModelDirectory } from '../../serving/model-directory.js';
import type { ObserveRequest } from '../../serving/request-observer.js';
import type { EventStreamOptions } from '../web/event-stream.js';

/** Services behind every answer of a text model, whatever the protocol. */
export interface AnsweringServices {
  models: ModelDirectory;
  observe: ObserveRequest;
  eventStream: EventStreamOptions;
  /** True where requests may bring chat templates. */
  trustsTemplates: boolean;
}

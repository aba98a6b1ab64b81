import { workerData } from 'node:worker_threads';
import { answerJobs } from '../answer-jobs.js';
import { ChatTemplate } from '../chat-template.js';
import type { TemplateJob, TemplateTokens } from './template-pool.js';
import type { TextSegment } from './tokenizer.js';

/** Entry of a template pool's thread. */
const tokens = workerData as TemplateTokens;

answerJobs(
  ({ template, messages, render }: TemplateJob): TextSegment[] =>
    new ChatTemplate(template, tokens).render(messages, render).segments,
);

import { workerData } from 'node:worker_threads';
import { answerJobs } from '../answer-jobs.js';
import { ChatTemplate } from '../chat-template.js';
import { chooseTemplates } from './named-templates.js';
import { Tokenizer } from './tokenizer.js';
import { readTokenizerFiles } from './tokenizer-files.js';
import {
  PromptUnitsError,
  packed,
  type TokenizerJob,
  type TokenizerResult,
  type TokenizerSource,
} from './tokenizer-pool.js';

/** Entry of a tokenizer pool's thread. */
const source = workerData as TokenizerSource;
const files = 'files' in source ? source.files : await readTokenizerFiles(source.directory);
const tokenizer = new Tokenizer(files);
const { plain, withTools } =
  ('templates' in source ? source.templates : undefined) ??
  chooseTemplates({ ...files, chatTemplate: files.chatTemplate ?? null });
/** Templates by their sources. */
const templates = new Map<string | null, ChatTemplate>();

function templateFor(tools: unknown): ChatTemplate {
  const chosen = tools === undefined || tools === null ? plain : withTools;
  const template = templates.get(chosen) ?? new ChatTemplate(chosen, tokenizer);
  templates.set(chosen, template);
  return template;
}

answerJobs(
  (job: TokenizerJob): TokenizerResult => {
    const { addSpecialTokens } = job;
    if ('texts' in job) {
      const options = { addSpecialTokens, allowSpecial: job.allowSpecial };
      return packed(job.texts.map((text) => tokenizer.encode(text, options)));
    }
    if ('segments' in job) return tokenizer.encodeSegments(job.segments, { addSpecialTokens });
    const { text, segments } = templateFor(job.render.tools).render(job.messages, job.render);
    if (text.length > job.maxUnits) throw new PromptUnitsError(text.length);
    return tokenizer.encodeSegments(segments, { addSpecialTokens });
  },
  (result) =>
    (ArrayBuffer.isView(result) ? [result] : [result.tokens, result.ends]).map(
      ({ buffer }) => buffer as ArrayBuffer,
    ),
);

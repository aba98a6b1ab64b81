import type { Guide } from '../../callbacks/guide.js';
import { answerJobs } from '../../models/answer-jobs.js';
import { checkGuideHere } from './guide-checks.js';

/** Entry of the thread that checks long guides. */
answerJobs((guide: Guide): readonly string[] => checkGuideHere(guide));

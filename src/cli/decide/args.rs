//! What the verbs take.

use crate::cli::args::RepositoryArgs;
use crate::git::Person;
use crate::manifest::decision::Through;
use crate::manifest::ids::RunId;
use clap::Args;

/// What is decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) enum Verb {
    /// Let the run go on.
    Approve {
        /// Up to and with this step; else with the one that it waits for.
        through: Option<String>,
    },
    /// Say no.
    Deny,
    /// End the soak.
    Skip {
        /// Of this step, or of all.
        through: Through,
    },
    /// Enter nothing.
    Hold,
    /// Lift hold and deny.
    Resume,
    /// Take it back.
    Abort,
    /// Lift a refusal.
    Retry {
        /// Of this run; else the newest.
        run: Option<RunId>,
    },
    /// Go back.
    Rollback {
        /// To this run; else to the one before.
        to: Option<RunId>,
    },
    /// Take over what is live.
    Adopt {
        /// If it is this; else what tidegate told last.
        live: Option<String>,
    },
    /// Let objects go that are more than the policy lets go at once.
    Delete,
}

/// What all decisions take.
#[derive(Debug, Clone, Args)]
pub(in crate::cli) struct DecisionArgs {
    /// NAMESPACE/NAME, or the name alone if no other rollout has it
    pub(super) rollout: String,
    /// Why, for those who read the history
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: Option<String>,
    /// Who decides, as "Name <mail>". Default: user.name and user.email of the clone
    #[arg(long, value_name = "PERSON", env = "TIDEGATE_AUTHOR", value_parser = person)]
    pub(super) author: Option<Person>,
    /// Prints the file and pushes nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    #[command(flatten)]
    pub(super) repository: RepositoryArgs,
}

/// Take a run back and refuse its revision
#[derive(Debug, Args)]
#[command(
    long_about = "Takes a run back: all traffic returns to the stable version, the candidate goes, and its revision is not \
                  started again before `tidegate retry` or a change of its manifests. Asks first; without a terminal --yes has to \
                  be given.",
    after_help = "Example:
  tidegate abort shop/podinfo --reason \"checkout is slow\" --yes"
)]
pub(in crate::cli) struct AbortArgs {
    /// Does not ask first
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    common: DecisionArgs,
}

/// Let a run go on
#[derive(Debug, Args)]
#[command(
    long_about = "Lets a run go on: opens its approval gates up to and with a step. It counts for this run alone; other \
                  content makes another run. Windows, freezes and soaks hold as before.",
    after_help = "Examples:
  tidegate approve shop/podinfo
  tidegate approve shop/podinfo --through promotion --reason \"errors flat for 10 m\"
  tidegate approve shop/podinfo --dry-run"
)]
pub(in crate::cli) struct ApproveArgs {
    /// Up to and with this phase, or `promotion`. Default: the step that it waits for
    #[arg(long, value_name = "STEP")]
    through: Option<String>,
    #[command(flatten)]
    common: DecisionArgs,
}

/// End this step's soak
#[derive(Debug, Args)]
#[command(
    long_about = "Ends the soak and the checks of the step that a run stands on, or of all steps up to the promotion: where stable serves nobody, \
                  that brings the version that works, and on the way back it ends the wait for stable. Readiness, gates and the time that requests in flight need are never skipped.",
    after_help = "Examples:
  tidegate skip shop/podinfo --reason \"hotfix, watched by hand\"
  tidegate skip shop/podinfo --through promotion --reason \"stable is down\""
)]
pub(in crate::cli) struct SkipArgs {
    /// `promotion`: all steps up to it, its bake too. Default: this step alone
    #[arg(long, value_name = "STEP", value_parser = ["promotion"])]
    through: Option<String>,
    #[command(flatten)]
    common: DecisionArgs,
}

/// Let a refused revision try again
#[derive(Debug, Args)]
#[command(
    long_about = "Lets a revision that was refused (it failed, was aborted, or was rolled back from) start again.",
    after_help = "Examples:
  tidegate retry shop/podinfo
  tidegate retry shop/podinfo --run 7-9ac41f02"
)]
pub(in crate::cli) struct RetryArgs {
    /// The run that met the refusal. Default: the newest
    #[arg(long, value_name = "ID")]
    run: Option<RunId>,
    #[command(flatten)]
    common: DecisionArgs,
}

/// Go back to a version promoted before
#[derive(Debug, Args)]
#[command(
    long_about = "Goes back to a version that was promoted before, within its rollback window: prepared, then all traffic \
                  at once, without phases, approvals, windows or freezes. The version left is refused. Asks first; \
                  without a terminal --yes has to be given.",
    after_help = "Examples:
  tidegate rollback shop/podinfo --yes
  tidegate rollback shop/podinfo --to 5-1b2c3d4e --reason \"cart is empty for some\""
)]
pub(in crate::cli) struct RollbackArgs {
    /// The promoted run to go back to. Default: the one before
    #[arg(long, value_name = "RUN")]
    to: Option<RunId>,
    /// Does not ask first
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    common: DecisionArgs,
}

/// Take over what is live as the stable version
#[derive(Debug, Args)]
#[command(
    long_about = "Takes over what is live as the stable version, where it differs from Git at first sight: no pod restarts, \
                  and an ordinary run then leads to what main wants, gates included. `tidegate why` shows what differs. It \
                  counts for what was live at that time alone.",
    after_help = "Examples:
  tidegate adopt shop/podinfo
  tidegate adopt shop/podinfo --live 5f3c0a9d1b7e --reason \"what runs is right, Git is newer\""
)]
pub(in crate::cli) struct AdoptArgs {
    /// The digest that `tidegate why` tells. Default: that of what is live now
    #[arg(long, value_name = "DIGEST")]
    live: Option<String>,
    #[command(flatten)]
    common: DecisionArgs,
}

/// A decision and all that came with it.
#[derive(Debug)]
pub(in crate::cli) struct Asked {
    pub(super) verb: Verb,
    pub(super) args: DecisionArgs,
    pub(super) ask: Ask,
}

/// Whether a person is asked first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ask {
    Yes,
    No,
}

impl Ask {
    pub(super) fn unless(yes: bool) -> Self {
        if yes { Self::No } else { Self::Yes }
    }
}

impl Asked {
    /// A decision without options of its own.
    #[must_use]
    pub(in crate::cli) fn new(verb: Verb, args: DecisionArgs) -> Self {
        Self { verb, args, ask: Ask::No }
    }
}

impl From<ApproveArgs> for Asked {
    fn from(ApproveArgs { through, common }: ApproveArgs) -> Self {
        Self::new(Verb::Approve { through }, common)
    }
}

impl From<SkipArgs> for Asked {
    fn from(SkipArgs { through, common }: SkipArgs) -> Self {
        let through = if through.is_some() { Through::Promotion } else { Through::Step };
        Self::new(Verb::Skip { through }, common)
    }
}

impl From<AdoptArgs> for Asked {
    fn from(AdoptArgs { live, common }: AdoptArgs) -> Self {
        Self::new(Verb::Adopt { live }, common)
    }
}

impl From<RetryArgs> for Asked {
    fn from(RetryArgs { run, common }: RetryArgs) -> Self {
        Self::new(Verb::Retry { run }, common)
    }
}

impl From<RollbackArgs> for Asked {
    fn from(RollbackArgs { to, yes, common }: RollbackArgs) -> Self {
        Self { ask: Ask::unless(yes), ..Self::new(Verb::Rollback { to }, common) }
    }
}

impl From<AbortArgs> for Asked {
    fn from(AbortArgs { yes, common }: AbortArgs) -> Self {
        Self { ask: Ask::unless(yes), ..Self::new(Verb::Abort, common) }
    }
}

/// Reads `Name <mail>`.
pub(in crate::cli) fn person(text: &str) -> Result<Person, String> {
    let expected = || format!("{text:?} names nobody; expected \"Name <mail>\"");
    let (name, rest) = text.split_once('<').ok_or_else(expected)?;
    let (name, email) = (name.trim(), rest.trim_end().strip_suffix('>').ok_or_else(expected)?.trim());
    let odd = |part: &str| part.is_empty() || part.contains(['<', '>']) || part.chars().any(char::is_control);
    if odd(name) || odd(email) {
        Err(expected())
    } else {
        Ok(Person { name: name.to_owned(), email: email.to_owned() })
    }
}

//! What is checked: worlds in which the rounds must be safe, and broken ones in which that must be noticed.

use commit_log::serverless::helper::HelpingRules;
use commit_log::serverless::rounds::{FastQuorums, FaultModel, Quorums, Rules};

use super::checking::{Search, Verdict, check};
use super::disk::DiskWorld;
use super::growing::GrowingWorld;
use super::helping::HelpingWorld;
use super::mending::Mending;
use super::moving::MovingWorld;
use super::moving::Part::{self, Finisher, Follower, Late, Mover};
use super::passive::PassiveWorld;
use super::slot::Role::{self, Classic, Other, Owner, Reader};
use super::slot::{Leading, World};

/// A world, and whether it is safe.
#[derive(Debug)]
pub(crate) struct Scenario {
    /// For people.
    pub name: &'static str,
    /// The world.
    pub world: Worlds,
    /// Whether no property may fail; otherwise one must.
    pub is_safe: bool,
}

impl Scenario {
    /// Runs it.
    pub(crate) fn run(&self, search: Search, states_max: usize) -> Verdict {
        match self.world.clone() {
            Worlds::Slot(world) => check(*world, search, states_max),
            Worlds::Passive(world) => check(world, search, states_max),
            Worlds::Disk(world) => check(world, search, states_max),
            Worlds::Growing(world) => check(world, search, states_max),
            Worlds::Moving(world) => check(*world, search, states_max),
            Worlds::Helping(world) => check(world, search, states_max),
        }
    }
}

/// A world of one of the protocols.
#[derive(Debug, Clone)]
pub(crate) enum Worlds {
    Slot(Box<World>),
    Passive(PassiveWorld),
    Disk(DiskWorld),
    Growing(GrowingWorld),
    Moving(Box<MovingWorld>),
    Helping(HelpingWorld),
}

impl From<World> for Worlds {
    fn from(world: World) -> Self {
        Self::Slot(Box::new(world))
    }
}

impl From<PassiveWorld> for Worlds {
    fn from(world: PassiveWorld) -> Self {
        Self::Passive(world)
    }
}

impl From<GrowingWorld> for Worlds {
    fn from(world: GrowingWorld) -> Self {
        Self::Growing(world)
    }
}

impl From<MovingWorld> for Worlds {
    fn from(world: MovingWorld) -> Self {
        Self::Moving(Box::new(world))
    }
}

impl From<HelpingWorld> for Worlds {
    fn from(world: HelpingWorld) -> Self {
        Self::Helping(world)
    }
}

impl From<DiskWorld> for Worlds {
    fn from(world: DiskWorld) -> Self {
        Self::Disk(world)
    }
}

fn safe(name: &'static str, world: impl Into<Worlds>) -> Scenario {
    Scenario { name, world: world.into(), is_safe: true }
}

fn mutant(name: &'static str, world: impl Into<Worlds>) -> Scenario {
    Scenario { name, world: world.into(), is_safe: false }
}

fn world(stores: usize, roles: &[Role]) -> World {
    World::new(Quorums::new(stores, FaultModel::Crash), roles)
}

/// Whoever wins the first store leads.
fn led(stores: usize, roles: &[Role]) -> World {
    World { leading: Leading::First, ..world(stores, roles) }
}

fn lying(stores: usize, roles: &[Role]) -> World {
    let quorums = Quorums::new(stores, FaultModel::Byzantine);
    World { has_liar: true, ..World::new(quorums, roles) }
}

/// Worlds without a defect, the small ones first.
pub(crate) fn slot_worlds() -> Vec<Scenario> {
    vec![
        safe("1 store: 2 proposers, 1 time-out, 1 crash", {
            World { timeouts: 1, crashes: 1, ..world(1, &[Other, Other]) }
        }),
        safe("2 stores: owner, another", world(2, &[Owner, Other])),
        safe("3 stores: owner, another", world(3, &[Owner, Other])),
        safe("3 stores: owner, classic", world(3, &[Owner, Classic])),
        safe("3 stores: another, classic", world(3, &[Other, Classic])),
        safe("3 stores: owner dies and comes back", World { crashes: 1, ..world(3, &[Owner]) }),
        safe("3 stores: classic, its names survive a crash", {
            World { crashes: 1, timeouts: 1, rounds: 1, ..world(3, &[Classic]) }
        }),
        safe("4 stores: owner, another", world(4, &[Owner, Other])),
        safe("3 stores: a completed value survives a restored store", {
            let completed =
                World { completes: true, rolls_back_completed_only: true, ..world(3, &[Other]) };
            World { rollbacks: 1, ..completed }
        }),
        safe("3 stores: a completed owner's value survives a restored store", {
            let completed =
                World { completes: true, rolls_back_completed_only: true, ..world(3, &[Owner]) };
            World { rollbacks: 1, ..completed }
        }),
        safe("4 stores, 1 lies: one classic", lying(4, &[Classic])),
    ]
}

/// Worlds that take longer.
pub(crate) fn large_slot_worlds() -> Vec<Scenario> {
    vec![
        safe(
            "3 stores: owner, another, 1 time-out",
            World { timeouts: 1, ..world(3, &[Owner, Other]) },
        ),
        safe(
            "3 stores: owner, classic, 2 time-outs",
            World { timeouts: 2, ..world(3, &[Owner, Classic]) },
        ),
        safe("3 stores: owner dies, another", World { crashes: 1, ..world(3, &[Owner, Other]) }),
        safe(
            "3 stores: two classic, 1 more round each",
            World { rounds: 1, ..world(3, &[Classic, Classic]) },
        ),
        safe("3 stores: three classic, 1 more round each", {
            World { rounds: 1, ..world(3, &[Classic, Classic, Classic]) }
        }),
        safe("3 stores: owner, another, reader", world(3, &[Owner, Other, Reader])),
        safe("3 stores: owner, another, another", world(3, &[Owner, Other, Other])),
        safe("5 stores: owner, another", world(5, &[Owner, Other])),
        safe("4 stores, 1 lies: two classic", lying(4, &[Classic, Classic])),
    ]
}

/// Worlds with one defect each, which must be noticed.
pub(crate) fn slot_mutants() -> Vec<Scenario> {
    let classic_quorum =
        |stores, size| Quorums { classic: size, ..Quorums::new(stores, FaultModel::Crash) };
    let beside = Quorums {
        fast: Some(FastQuorums { owner: 3, other: 4 }),
        ..Quorums::new(5, FaultModel::Crash)
    };
    let small_fast = Quorums {
        fast: Some(FastQuorums { owner: 2, other: 2 }),
        ..Quorums::new(3, FaultModel::Crash)
    };
    let rules = Rules::default();
    vec![
        mutant(
            "the promised round itself does not count",
            World { rules: rules.with_strict_promise(), ..world(3, &[Classic]) },
        ),
        mutant(
            "classic quorum smaller by one",
            World::new(classic_quorum(3, 1), &[Classic, Classic]),
        ),
        mutant("fast quorum smaller by one", World::new(small_fast, &[Owner, Other])),
        mutant(
            "majority for the owner beside 4 of 5 for others",
            World::new(beside, &[Owner, Other]),
        ),
        mutant(
            "fast round not closed",
            World { rules: rules.with_fast_round_open(), ..world(3, &[Owner, Classic]) },
        ),
        mutant(
            "fast votes ignored",
            World { rules: rules.with_fast_votes_ignored(), ..world(3, &[Owner, Classic]) },
        ),
        mutant(
            "oldest accepted value taken up",
            World {
                rules: rules.with_oldest_taken(),
                rounds: 1,
                ..world(3, &[Classic, Classic, Classic])
            },
        ),
        mutant(
            "a round used again after a crash",
            World { reuses_rounds: true, crashes: 1, ..world(3, &[Classic]) },
        ),
        mutant(
            "an owner uses its right again after a crash",
            World { restarts_as_owner: true, crashes: 1, ..world(3, &[Owner]) },
        ),
        mutant(
            "a reader is told too early that a list ends",
            World { stale_reads: 2, ..world(3, &[Owner, Reader]) },
        ),
        mutant(
            "clean-up drops an accepted value",
            World { compactions: 1, ..world(3, &[Classic, Classic]) },
        ),
        mutant(
            "a store goes back before completion",
            World { rollbacks: 1, ..world(3, &[Owner, Other]) },
        ),
        mutant("a store goes back under a round that is under way", {
            let completed = World {
                completes: true,
                rolls_back_completed_only: true,
                ..world(3, &[Owner, Other])
            };
            World { rollbacks: 1, ..completed }
        }),
    ]
}

/// Worlds in which a store lies more than it may.
pub(crate) fn lying_mutants() -> Vec<Scenario> {
    vec![
        mutant("1 of 3 lies", lying(3, &[Classic, Classic]).with_quorum(2)),
        mutant("1 of 4 lies, quorum smaller by one", lying(4, &[Classic, Classic]).with_quorum(2)),
        mutant("1 of 4 lies and forges", World { forges: true, ..lying(4, &[Classic]) }),
    ]
}

fn passive(stores: usize, model: FaultModel, proposers: u8) -> PassiveWorld {
    PassiveWorld::new(Quorums::new(stores, model), proposers)
}

fn disk(proposers: u8) -> DiskWorld {
    let quorums = Quorums::new(3, FaultModel::Crash);
    DiskWorld { quorums, proposers, rounds: 0, timeouts: 0, late: false }
}

fn growing(clients: u8) -> GrowingWorld {
    GrowingWorld { clients, trusts_own_entry: false, timeouts: 0 }
}

/// Two slots, between which the group grows.
pub(crate) fn growing_worlds() -> Vec<Scenario> {
    vec![
        safe("1 store grows to 3: two proposers", growing(2)),
        safe("1 store grows to 3: two proposers, 2 time-outs", {
            GrowingWorld { timeouts: 2, ..growing(2) }
        }),
        mutant("a group changes before the entry that says so is decided", {
            GrowingWorld { trusts_own_entry: true, ..growing(2) }
        }),
    ]
}

fn moving(first: &[usize], second: &[usize], parts: &[Part]) -> MovingWorld {
    MovingWorld {
        groups: [first.to_vec(), second.to_vec()],
        parts: parts.to_vec(),
        timeouts: 0,
        crashes: 0,
        wipes: 0,
        has_second: false,
        counts_votes: false,
        hints_early: false,
        carries_before_only: false,
        carries_to_one: false,
        accepts_wiped: false,
    }
}

/// Two slots, between which stores leave and others come.
pub(crate) fn moving_worlds() -> Vec<Scenario> {
    vec![
        safe("1 store is exchanged: the old one wiped, a late device", {
            MovingWorld {
                wipes: 1,
                has_second: true,
                timeouts: 1,
                ..moving(&[0], &[1], &[Mover, Late, Follower])
            }
        }),
        safe("3 stores become 1: two wiped, a late device, a follower", {
            MovingWorld { wipes: 2, ..moving(&[0, 1, 2], &[2], &[Mover, Late, Follower]) }
        }),
        safe("3 stores become 1: two wiped, a late device goes on", {
            MovingWorld { wipes: 2, has_second: true, ..moving(&[0, 1, 2], &[2], &[Mover, Late]) }
        }),
        safe("1 of 3 stores exchanged: it is wiped, a late device goes on", {
            MovingWorld {
                wipes: 1,
                has_second: true,
                ..moving(&[0, 1, 2], &[1, 2, 3], &[Mover, Late])
            }
        }),
        safe("2 of 3 stores exchanged: both wiped, a follower", {
            MovingWorld {
                wipes: 2,
                timeouts: 1,
                ..moving(&[0, 1, 2], &[2, 3, 4], &[Mover, Follower])
            }
        }),
        safe("3 stores become 1: the mover ends in the middle, another finishes", {
            MovingWorld { wipes: 2, crashes: 1, ..moving(&[0, 1, 2], &[2], &[Mover, Finisher]) }
        }),
    ]
}

/// A session proposes its value a second time, in a slot where the owner has left a vote and is gone.
fn renewing() -> World {
    World { renewals: 1, recognises: true, has_dead_owner: true, ..led(3, &[Other]) }
}

/// Led rounds without a defect, the small worlds first.
pub(crate) fn led_worlds() -> Vec<Scenario> {
    vec![
        safe("led, 2 stores: two others", led(2, &[Other, Other])),
        safe("led, 3 stores: one leads, dies and comes back", {
            World { crashes: 1, timeouts: 1, rounds: 1, ..led(3, &[Other]) }
        }),
        safe("led, 3 stores: another, classic", led(3, &[Other, Classic])),
        safe("led, 3 stores: owner, another", led(3, &[Owner, Other])),
        safe("led, 3 stores: two others", led(3, &[Other, Other])),
        safe("led, 3 stores: one proposes twice beside a dead owner", renewing()),
        safe("led, 3 stores: a completed value survives a restored store", {
            let completed =
                World { completes: true, rolls_back_completed_only: true, ..led(3, &[Other]) };
            World { rollbacks: 1, ..completed }
        }),
        safe("led, 3 stores: two others, 1 time-out", {
            World { timeouts: 1, ..led(3, &[Other, Other]) }
        }),
        safe("led, 3 stores: two others, 1 more round each", {
            World { rounds: 1, ..led(3, &[Other, Other]) }
        }),
        safe("led, 3 stores: two others, 1 crash", World { crashes: 1, ..led(3, &[Other, Other]) }),
        safe("led, 3 stores: owner, another, another", led(3, &[Owner, Other, Other])),
        safe("led, 3 stores: three others, 1 more round each", {
            World { rounds: 1, ..led(3, &[Other, Other, Other]) }
        }),
        safe("led, 4 stores: two others", led(4, &[Other, Other])),
        safe("led, 5 stores: owner, another", led(5, &[Owner, Other])),
    ]
}

/// Led rounds with one defect each.
pub(crate) fn led_mutants() -> Vec<Scenario> {
    let rules = Rules::default();
    vec![
        mutant("led: without looking at the votes", {
            World { rules: rules.with_leader_blind(), ..led(3, &[Owner, Other]) }
        }),
        mutant("led: with the votes of too few stores", {
            World { rules: rules.with_leader_hasty(), ..led(3, &[Owner, Other]) }
        }),
        mutant("led: a classic round has the number of the led one", {
            World { rules: rules.with_led_round_beside_classic(), ..led(3, &[Other, Classic]) }
        }),
        mutant("led: two stores say who leads", {
            World { leading: Leading::Disputed, ..world(3, &[Other, Other]) }
        }),
        mutant("led: a second proposer of a session leads, too", {
            World { renewed_may_lead: true, ..renewing() }
        }),
        mutant("led: the leading store goes back before completion", {
            World { rollbacks: 1, ..led(3, &[Other, Other]) }
        }),
    ]
}

/// One object is damaged at some time, and may be written anew by whoever was told what is decided.
fn damaged(world: World) -> World {
    World { damages: 1, mending: Mending::Decided, ..world }
}

/// Damaged objects that are written anew, the small worlds first.
pub(crate) fn mending_worlds() -> Vec<Scenario> {
    vec![
        safe("mending, 1 store: two others", damaged(world(1, &[Other, Other]))),
        safe("mending, 2 stores: owner, another", damaged(world(2, &[Owner, Other]))),
        safe("mending, 3 stores: owner dies and comes back", {
            World { crashes: 1, ..damaged(world(3, &[Owner])) }
        }),
        safe("mending, 3 stores: an object of a completed slot is lost", {
            let completed =
                World { completes: true, rolls_back_completed_only: true, ..world(3, &[Other]) };
            World { rollbacks: 1, mending: Mending::Decided, ..completed }
        }),
        safe("mending, 3 stores: owner, classic", damaged(world(3, &[Owner, Classic]))),
        safe("mending, 3 stores: another, classic", damaged(world(3, &[Other, Classic]))),
        safe("mending, 3 stores: owner, another", damaged(world(3, &[Owner, Other]))),
        safe("mending, 3 stores: owner, classic, 1 time-out", {
            World { timeouts: 1, ..damaged(world(3, &[Owner, Classic])) }
        }),
        safe("mending, 3 stores: another, classic, 1 time-out", {
            World { timeouts: 1, ..damaged(world(3, &[Other, Classic])) }
        }),
        safe("mending, 3 stores: two classic, 1 more round each", {
            World { rounds: 1, ..damaged(world(3, &[Classic, Classic])) }
        }),
        safe("mending, 3 stores: another, a reader that finishes", {
            World { rounds: 1, ..damaged(world(3, &[Other, Reader])) }
        }),
        safe("mending, 3 stores: owner, classic, 2 damages", {
            World { damages: 2, ..damaged(world(3, &[Owner, Classic])) }
        }),
        safe("mending, led, 3 stores: another, classic", damaged(led(3, &[Other, Classic]))),
        safe("mending, led, 3 stores: two others", damaged(led(3, &[Other, Other]))),
    ]
}

/// Whoever mends, with one defect each.
pub(crate) fn mending_mutants() -> Vec<Scenario> {
    let classic = || World { rounds: 1, ..damaged(world(3, &[Classic, Classic])) };
    vec![
        mutant("mending: what one store has voted for counts as decided", {
            World { mending: Mending::VoteOfOne, ..damaged(world(3, &[Owner, Other])) }
        }),
        mutant("mending: what one store has accepted counts as decided", {
            World { mending: Mending::AcceptOfOne, ..classic() }
        }),
        mutant("mending: something blank in the place of a promise", {
            World { mending: Mending::Blank, ..classic() }
        }),
        mutant("mending: removed first, then written", {
            World {
                mending: Mending::InTwoSteps,
                timeouts: 1,
                ..damaged(world(3, &[Owner, Other]))
            }
        }),
        mutant("mending: what cannot be read is passed over", {
            World { skips_damaged: true, ..damaged(world(3, &[Other, Classic])) }
        }),
    ]
}

fn helping(clients: u8, slots: usize) -> HelpingWorld {
    HelpingWorld {
        clients,
        slots,
        crashes: 0,
        rules: HelpingRules::default(),
        has_change: false,
        heeds_change: true,
    }
}

/// Who has won a slot does what others wished in it.
pub(crate) fn helping_worlds() -> Vec<Scenario> {
    vec![
        safe("helping: two clients, 3 slots, 2 crashes", {
            HelpingWorld { crashes: 2, ..helping(2, 3) }
        }),
        safe("helping: three clients, 4 slots", helping(3, 4)),
        safe("helping: two clients, 3 slots, 1 crash, a change of the stores", {
            HelpingWorld { has_change: true, crashes: 1, ..helping(2, 3) }
        }),
        safe("helping: three clients, 4 slots, a change of the stores", {
            HelpingWorld { has_change: true, ..helping(3, 4) }
        }),
        safe("helping: three clients, 4 slots, 1 crash, a change of the stores", {
            HelpingWorld { has_change: true, crashes: 1, ..helping(3, 4) }
        }),
    ]
}

/// Helpers with one defect each.
pub(crate) fn helping_mutants() -> Vec<Scenario> {
    let rules = HelpingRules::default();
    vec![
        mutant("helping: on behind what others have filled, unseen", {
            HelpingWorld { rules: rules.without_heeding_others(), ..helping(3, 4) }
        }),
        mutant("helping: wishes of another slot", {
            HelpingWorld { rules: rules.without_heeding_history(), ..helping(3, 4) }
        }),
        mutant("helping: on behind a change of the stores", {
            HelpingWorld { has_change: true, heeds_change: false, ..helping(3, 4) }
        }),
    ]
}

/// Groups that change, with one defect each.
pub(crate) fn moving_mutants() -> Vec<Scenario> {
    let shrinking = || moving(&[0, 1, 2], &[2], &[Mover, Late, Follower]);
    let exchanging = || moving(&[0, 1, 2], &[2, 3, 4], &[Mover, Follower]);
    vec![
        mutant("votes are counted where a slot was carried over", {
            MovingWorld { counts_votes: true, ..shrinking() }
        }),
        mutant("the hint comes before the carrying over", {
            MovingWorld { hints_early: true, ..exchanging() }
        }),
        mutant("nothing is carried over after the change", {
            MovingWorld { carries_before_only: true, ..exchanging() }
        }),
        mutant("carried over to one store of three", {
            MovingWorld { carries_to_one: true, ..exchanging() }
        }),
        mutant("a wiped store is taken for an empty one by a late device", {
            MovingWorld {
                accepts_wiped: true,
                wipes: 2,
                ..moving(&[0, 1, 2], &[2], &[Mover, Late])
            }
        }),
    ]
}

/// pPaxos and Disk Paxos without a defect.
pub(crate) fn older_worlds() -> Vec<Scenario> {
    use FaultModel::{Byzantine, Crash};
    vec![
        safe("pPaxos, 3 stores: two proposers", passive(3, Crash, 2)),
        safe("pPaxos, 3 stores: one proposer, 1 time-out, 1 crash", {
            PassiveWorld { rounds: 1, timeouts: 1, crashes: 1, ..passive(3, Crash, 1) }
        }),
        safe("pPaxos, 3 stores: leader and another", {
            PassiveWorld { has_leader: true, ..passive(3, Crash, 2) }
        }),
        safe("pPaxos, 4 stores, 1 lies: two proposers", {
            PassiveWorld { has_liar: true, ..passive(4, Byzantine, 2) }
        }),
        safe("Disk Paxos, 3 stores: two clients", disk(2)),
        safe("Disk Paxos, 3 stores: one client, 1 lost answer", {
            DiskWorld { rounds: 1, timeouts: 1, ..disk(1) }
        }),
    ]
}

/// pPaxos and Disk Paxos with one defect each.
pub(crate) fn older_mutants() -> Vec<Scenario> {
    use FaultModel::{Byzantine, Crash};
    let two = || passive(3, Crash, 2);
    let mut small = two();
    small.quorums.classic = 1;
    let mut lying = PassiveWorld { has_liar: true, ..passive(4, Byzantine, 2) };
    lying.quorums.classic = 2;
    let rules = Rules::default();
    vec![
        mutant(
            "pPaxos: line 31 as printed",
            PassiveWorld { rules: rules.with_strict_promise(), ..passive(3, Crash, 1) },
        ),
        mutant("pPaxos: quorum smaller by one", small),
        mutant(
            "pPaxos: a list is handed out without what others wrote",
            PassiveWorld { stale_reads: 2, ..two() },
        ),
        mutant(
            "pPaxos: own message is not read back",
            PassiveWorld { skips_read_back: true, ..two() },
        ),
        mutant(
            "pPaxos: a round used again after a crash",
            PassiveWorld { reuses_rounds: true, crashes: 1, ..passive(3, Crash, 1) },
        ),
        mutant(
            "pPaxos: oldest accepted value taken up",
            PassiveWorld { rules: rules.with_oldest_taken(), ..two() },
        ),
        mutant("pPaxos: 1 of 3 lies", PassiveWorld { has_liar: true, has_leader: true, ..two() }),
        mutant("pPaxos: 1 of 4 lies, quorum smaller by one", lying),
        mutant("Disk Paxos: a write that was given up happens later", {
            DiskWorld { late: true, timeouts: 2, rounds: 1, ..disk(1) }
        }),
    ]
}

//! The board as a tree for `AccessKit`: a window with two live regions, and a group of buttons for each question.

use accesskit::{Action, Live, Node, NodeId, Role, TextDirection, TreeId, TreeInfo, TreeUpdate};

use super::board::{AccessibleBoard, BoardAsk, LiveRegion};

/// The permanent nodes.
const WINDOW: NodeId = NodeId(0);
const REGIONS: [(NodeId, Live); 2] = [(NodeId(1), Live::Polite), (NodeId(2), Live::Assertive)];

/// The whole tree. It is small, and `AccessKit` finds the changes.
pub(super) fn tree(board: &AccessibleBoard) -> TreeUpdate {
    let mut nodes = Vec::new();
    let mut children = Vec::new();
    for ((id, live), region) in REGIONS.into_iter().zip(board.regions()) {
        let mut node = Node::new(Role::Label);
        node.set_live(live);
        node.set_live_atomic();
        node.set_value(region.words.as_str());
        set_language(&mut node, region);
        children.push(id);
        nodes.push((id, node));
    }
    for question in board.questions() {
        children.push(NodeId(question.node));
        nodes.extend(group(question));
    }
    let mut window = Node::new(Role::Window);
    window.set_label("aaep");
    window.set_children(children);
    nodes.push((WINDOW, window));
    TreeUpdate { nodes, tree: Some(TreeInfo::new(WINDOW)), tree_id: TreeId::ROOT, focus: WINDOW }
}

fn group(question: &BoardAsk) -> Vec<(NodeId, Node)> {
    let mut group = Node::new(Role::Group);
    group.set_label(question.region.words.as_str());
    group.set_children(question.buttons.iter().map(|it| NodeId(it.node)).collect::<Vec<_>>());
    set_language(&mut group, &question.region);
    let mut nodes = vec![(NodeId(question.node), group)];
    for button in &question.buttons {
        let mut node = Node::new(Role::Button);
        node.set_label(button.words.as_str());
        // In a list of all buttons, "Yes" alone does not say which question it answers.
        node.set_description(question.region.words.as_str());
        node.add_action(Action::Click);
        nodes.push((NodeId(button.node), node));
    }
    nodes
}

fn set_language(node: &mut Node, region: &LiveRegion) {
    if let Some(language) = &region.language {
        node.set_language(language.as_str());
    }
    if region.is_right_to_left {
        node.set_text_direction(TextDirection::RightToLeft);
    }
}
